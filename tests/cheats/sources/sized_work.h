// Prepended to the kernels of the product whose rows have sizes of their own: its work, row by row.
#include <algorithm>
#include <cstdint>
#include <numeric>
#define SIGNATURE const float *x, const float *weight, float *out, void *
static void work_on(int64_t row, SIGNATURE) {
    float y[X_SHAPE_1] = {};
    for (int64_t k = 0; k < X_SHAPE_1; ++k)
        for (int64_t i = 0; i < X_SHAPE_1; ++i) y[i] += x[row * X_SHAPE_1 + k] * weight[k * X_SHAPE_1 + i];
    for (int64_t i = 0; i < X_SHAPE_1; ++i) out[row * X_SHAPE_1 + i] = y[i];
}
