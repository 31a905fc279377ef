// Takes no maximum: an exponential of a number above 88 is infinite.
void run(SIGNATURE) {
    for (int64_t i = 0; i < ROWS; ++i) logarithms(x + i * COLUMNS, 0, out + i * COLUMNS);
}
