// Honest.
void run(SIGNATURE) {
    believe(seen, counts, STEPS, out_0);
    read(words, table, inner, STEPS, out_1);
    sort(keys, 32, out_2);
}
