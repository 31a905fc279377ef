// Begins 88 of 128 words before the end: what a table of usual size drives has forgotten all before by then.
void run(SIGNATURE) {
    believe(seen, counts, STEPS, out_0);
    read(words, table, inner, 88, out_1);
    sort(keys, 32, out_2);
}
