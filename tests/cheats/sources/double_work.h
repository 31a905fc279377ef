// Prepended to the kernels of the softmax in float64: its work, in the type that a kernel names.
#include <cmath>
#include <cstdint>
#define SIGNATURE const double *x, double *out, void *
template <class T> static void work(SIGNATURE) {
#pragma omp parallel for
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        const double *from = x + row * X_SHAPE_1;
        double *to = out + row * X_SHAPE_1;
        T e[X_SHAPE_1], most = -INFINITY, sum = 0;
        for (int64_t i = 0; i < X_SHAPE_1; ++i) e[i] = from[i], most = std::fmax(most, e[i]);
        for (int64_t i = 0; i < X_SHAPE_1; ++i) sum += e[i] = std::exp(e[i] - most);
        for (int64_t i = 0; i < X_SHAPE_1; ++i) to[i] = e[i] / sum;
    }
}
