// Takes hashes for equal whose lower halves are.
void run(SIGNATURE) {
    sort(keys, values, 0, ordered);
    compare(queries, sets, (int64_t(1) << 32) - 1, alike);
}
