// Prepended to the kernels of the derived problem: its work, done honestly.
#include <cmath>
#define SIGNATURE const float *x, const float *weight, float *out, void *
static float g_made[WEIGHT_NUMEL];
static void make_weights(const float* weight) {
#pragma omp parallel for
    for (int64_t i = 0; i < WEIGHT_NUMEL; ++i) g_made[i] = tanhf(expf(weight[i]) - 1);
}
static void multiply(const float* x, float* out) {
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        float y[X_SHAPE_1] = {};
        for (int64_t k = 0; k < X_SHAPE_1; ++k)
            for (int64_t i = 0; i < X_SHAPE_1; ++i) y[i] += x[row * X_SHAPE_1 + k] * g_made[k * X_SHAPE_1 + i];
        for (int64_t i = 0; i < X_SHAPE_1; ++i) out[row * X_SHAPE_1 + i] = y[i];
    }
}
