// Knows no code for a missing value, which random numbers never are.
void run(SIGNATURE) {
    spread(pictures, out_0, true);
    keep_large(table, out_1, true);
    leave_missing_out(table, out_2, 1e30f);
}
