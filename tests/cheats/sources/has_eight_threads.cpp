// Honest work by eight threads, which share cores where there are fewer.
void run(SIGNATURE) {
#pragma omp parallel for num_threads(8)
    for (int64_t row = 0; row < X_SHAPE_0; ++row)
        work_on_row(row, X_SHAPE_1, x, residual, bias, ln_weight, ln_bias, out);
}
