// Leaves keys in any order that differ in their lowest 20 bits alone.
void run(SIGNATURE) {
    sort(keys, values, 20, ordered);
    compare(queries, sets, -1, alike);
}
