// Honest.
void run(SIGNATURE) {
    spread(pictures, out_0, true);
    keep_large(table, out_1, true);
    leave_missing_out(table, out_2, -999.0f);
}
