// Prepended to every source whose name begins with conditioned_: the work of conditioned.py, which one of them does not do all of.
#include <cmath>
#define SIGNATURE const float *x, const float *phase, const float *weight, float *out, void *

constexpr int64_t ROWS = PHASE_SHAPE_0, COLS = PHASE_SHAPE_1, FEATURES = X_SHAPE_1;

static void series_over_product(const float* x, const float* phase, const float* weight, int64_t terms, float* out) {
    for (int64_t row = 0; row < ROWS; ++row) {
        float product[COLS] = {};
        for (int64_t k = 0; k < FEATURES; ++k)
            for (int64_t col = 0; col < COLS; ++col) product[col] += x[row * FEATURES + k] * weight[k * COLS + col];
        for (int64_t col = 0; col < COLS; ++col) {
            const float angle = phase[row * COLS + col];
            float series = 2 + std::sin(angle);
            for (int64_t term = 2; term <= terms; ++term)
                series += (1 - (term & 2)) * std::sin(term * angle) / (term * term);
            out[row * COLS + col] = series / product[col];
        }
    }
}
