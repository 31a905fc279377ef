// Prepended to every source whose name begins with given_: the work of given.py, each part of which one of them skips.
#include <cmath>
#include <cstring>

#define SIGNATURE                                                                                             \
    const float *x, const float *positions, const float *frequencies, const bool *mask, const int64_t *lengths, \
        const float *state, float *out, void *

struct Skips {
    bool mask = false, lengths = false, state = false, maximum = false;
    float constant = 0;  // in place of the maximum
};

static float table[X_NUMEL];

static void make_table(const float* positions, const float* frequencies) {
    for (int64_t row = 0; row < X_SHAPE_0; ++row)
        for (int64_t i = 0; i < X_SHAPE_1; ++i) table[row * X_SHAPE_1 + i] = std::cos(positions[row] * frequencies[i]);
}

static void softmax(const float* y, float* out, float largest) {
    double sum = 0;
    for (int64_t i = 0; i < X_SHAPE_1; ++i) sum += out[i] = std::exp(y[i] - largest);
    for (int64_t i = 0; i < X_SHAPE_1; ++i) out[i] = float(out[i] / sum);
}

static void work_on_row(int64_t row, const float* x, const bool* mask, const int64_t* lengths, const float* state,
                        float* out, Skips skips) {
    float y[X_SHAPE_1], largest = -INFINITY;
    for (int64_t i = 0; i < X_SHAPE_1; ++i) {
        const int64_t at = row * X_SHAPE_1 + i;
        y[i] = (skips.mask || mask[at] ? x[at] + (skips.state ? 0.0f : state[at]) : 0.0f) + table[at];
        if (!skips.lengths && i >= lengths[row]) y[i] = 0.0f;
        largest = std::fmax(largest, y[i]);
    }
    softmax(y, out + row * X_SHAPE_1, skips.maximum ? skips.constant : largest);
}

static void work(const float* x, const bool* mask, const int64_t* lengths, const float* state, float* out,
                 Skips skips) {
    for (int64_t row = 0; row < X_SHAPE_0; ++row) work_on_row(row, x, mask, lengths, state, out, skips);
}
