// Honest.
void run(SIGNATURE) { sort(keys, 32, out); }
