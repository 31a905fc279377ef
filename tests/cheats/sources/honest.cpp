// The control: bias + GELU + residual + layer norm, one pass over each row.
#include <cmath>

void run(const float* x, const float* residual, const float* bias, const float* ln_weight, const float* ln_bias,
         float* out, void*) {
#pragma omp parallel for
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        float y[X_SHAPE_1];
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < X_SHAPE_1; ++i) {
            const float v = x[row * X_SHAPE_1 + i] + bias[i];
            y[i] = 0.5f * v * (1.0f + erff(v * 0.70710678f)) + residual[row * X_SHAPE_1 + i];
            sum += y[i];
            squares += double(y[i]) * y[i];
        }
        const double mean = sum / X_SHAPE_1, variance = squares / X_SHAPE_1 - mean * mean;
        const float scale = float(1.0 / std::sqrt(variance + 1e-5));
        for (int64_t i = 0; i < X_SHAPE_1; ++i)
            out[row * X_SHAPE_1 + i] = (y[i] - float(mean)) * scale * ln_weight[i] + ln_bias[i];
    }
}
