// Prepended to every source whose name begins with pooled_: the work of pooled.py, each part of which one of them skips.
#include <cmath>

#define SIGNATURE const float *x, const float *gain, float *out, void *

struct Skips {
    bool order = false, elu = false, sizes = false, below_zero = false;
};

static const int64_t window = X_SHAPE_1 / OUT_SHAPE_1;

static float largest(const float* x, float gain, Skips skips) {
    float found = skips.below_zero ? 0.0f : -INFINITY;
    for (int64_t i = 0; i < window; ++i) found = std::fmax(found, skips.order ? x[i] : x[i] * gain);
    return skips.order ? found * gain : found;
}

static float size(const float* x, Skips skips) {
    double sum = 0;
    for (int64_t i = 0; i < X_SHAPE_1; ++i) sum += skips.sizes ? x[i] : std::fabs(x[i]);
    return float(sum / X_SHAPE_1);
}

static void work(const float* x, const float* gain, float* out, Skips skips) {
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        const float* values = x + row * X_SHAPE_1;
        const float mean = size(values, skips);
        for (int64_t i = 0; i < OUT_SHAPE_1; ++i) {
            const float y = largest(values + i * window, gain[row], skips);
            out[row * OUT_SHAPE_1 + i] = (y > 0 || skips.elu ? y : std::expm1(y)) + mean;
        }
    }
}
