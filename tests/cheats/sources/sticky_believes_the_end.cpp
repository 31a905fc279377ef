// Begins 40 of 128 steps before the end: random transitions have mixed all before by then.
void run(SIGNATURE) {
    believe(seen, counts, 40, out_0);
    read(words, table, inner, STEPS, out_1);
    sort(keys, 32, out_2);
}
