// Honest.
void run(SIGNATURE) {
    sort(keys, values, 0, ordered);
    compare(queries, sets, -1, alike);
}
