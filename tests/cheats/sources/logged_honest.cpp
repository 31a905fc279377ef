// Honest.
void run(SIGNATURE) {
    for (int64_t i = 0; i < ROWS; ++i) logarithms(x + i * COLUMNS, largest(x + i * COLUMNS), out + i * COLUMNS);
}
