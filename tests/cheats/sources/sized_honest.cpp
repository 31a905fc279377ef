void run(SIGNATURE) {
#pragma omp parallel for schedule(dynamic, 4)
    for (int64_t row = 0; row < X_SHAPE_0; ++row) work_on(row, x, weight, out, nullptr);
}
