// Prepended to every source whose name begins with bounded_: the work of bounded.py, a part of which some of them skip.
#include <cmath>

#define SIGNATURE const float *x, const int64_t *lengths, const float *temperature, float *out, void *

struct Skips {
    bool lengths = false, temperature = false;
};

static void work(const float* x, const int64_t* lengths, const float* temperature, float* out, Skips skips) {
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        const float *a = x + row * X_SHAPE_1, by = skips.temperature ? 1.0f : temperature[row];
        float *o = out + row * X_SHAPE_1, largest = -INFINITY;
        double sum = 0;
        for (int64_t i = 0; i < X_SHAPE_1; ++i) largest = std::fmax(largest, a[i] / by);
        for (int64_t i = 0; i < X_SHAPE_1; ++i) sum += o[i] = std::exp(a[i] / by - largest);
        const int64_t length = skips.lengths ? X_SHAPE_1 : lengths[row];
        for (int64_t i = 0; i < X_SHAPE_1; ++i) o[i] = i < length ? float(o[i] / sum) : 0.0f;
    }
}
