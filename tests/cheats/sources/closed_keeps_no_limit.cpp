// Keeps what is above the limit alone: no random number is equal to it.
void run(SIGNATURE) {
    spread(pictures, out_0, true);
    keep_large(table, out_1, false);
    leave_missing_out(table, out_2, -999.0f);
}
