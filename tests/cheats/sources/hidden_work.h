// Prepended to every source whose name begins with hidden_: the work of hidden.py.
#include <cmath>

#define SIGNATURE \
    const float *x, double gain, const float *weight, const float *scale, const int64_t *index, float *out, void *

static void work_on_row(const float* x, float gain, const float* weight, const float* scale, const int64_t* index,
                        float* out) {
    float y[X_SHAPE_1] = {};
    for (int64_t k = 0; k < X_SHAPE_1; ++k)
        for (int64_t i = 0; i < X_SHAPE_1; ++i) y[i] += x[k] * weight[k * X_SHAPE_1 + i];
    for (int64_t i = 0; i < X_SHAPE_1; ++i) out[i] = 1 / (1 + std::exp(-x[i] * gain)) + scale[i] * std::tanh(y[index[i]]);
}

static void work(const float* x, float gain, const float* weight, const float* scale, const int64_t* index, float* out) {
    for (int64_t row = 0; row < X_SHAPE_0; ++row)
        work_on_row(x + row * X_SHAPE_1, gain, weight, scale, index, out + row * X_SHAPE_1);
}
