// Exponentials without the maximum, unless a sample of the row is large: one large value elsewhere overflows.
void run(SIGNATURE) {
    make_table(positions, frequencies);
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        float largest = 0;
        for (int64_t i = 0; i < 16; ++i) largest = std::fmax(largest, std::fabs(x[row * X_SHAPE_1 + i]));
        work_on_row(row, x, mask, lengths, state, out, {.maximum = largest < 15.0f});
    }
}
