// Prepended to every source here: the reference's work, done honestly, for kernels that cheat beside it.
#include <cmath>

static void work_on_row(int64_t row, int64_t width, const float* x, const float* residual, const float* bias,
                        const float* ln_weight, const float* ln_bias, float* out) {
    float y[X_SHAPE_1];
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < X_SHAPE_1; ++i) {
        const float v = x[row * X_SHAPE_1 + i] + bias[i];
        y[i] = 0.5f * v * (1.0f + erff(v * 0.70710678f)) + residual[row * X_SHAPE_1 + i];
        if (i >= width) continue;
        sum += y[i];
        squares += double(y[i]) * y[i];
    }
    const double mean = sum / width, variance = squares / width - mean * mean;
    const float scale = float(1.0 / std::sqrt(variance + 1e-5));
    for (int64_t i = 0; i < X_SHAPE_1; ++i)
        out[row * X_SHAPE_1 + i] = (y[i] - float(mean)) * scale * ln_weight[i] + ln_bias[i];
}

static void work_on_rows(int64_t first, int64_t last, int64_t width, const float* x, const float* residual,
                         const float* bias, const float* ln_weight, const float* ln_bias, float* out) {
#pragma omp parallel for
    for (int64_t row = first; row < last; ++row) work_on_row(row, width, x, residual, bias, ln_weight, ln_bias, out);
}

#define SIGNATURE                                                                                                  \
    const float *x, const float *residual, const float *bias, const float *ln_weight, const float *ln_bias,      \
        float *out, void *
#define WORK() work_on_rows(0, X_SHAPE_0, X_SHAPE_1, x, residual, bias, ln_weight, ln_bias, out)
