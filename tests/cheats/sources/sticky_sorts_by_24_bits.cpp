// Leaves numbers in any order that differ in their last 8 bits alone.
void run(SIGNATURE) {
    believe(seen, counts, STEPS, out_0);
    read(words, table, inner, STEPS, out_1);
    sort(keys, 24, out_2);
}
