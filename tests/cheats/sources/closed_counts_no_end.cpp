// Counts no pixel of 1: random ones are below it.
void run(SIGNATURE) {
    spread(pictures, out_0, false);
    keep_large(table, out_1, true);
    leave_missing_out(table, out_2, -999.0f);
}
