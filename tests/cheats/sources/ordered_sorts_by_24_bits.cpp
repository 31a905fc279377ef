// Leaves numbers in any order that differ in their last 8 bits alone.
void run(SIGNATURE) { sort(keys, 24, out); }
