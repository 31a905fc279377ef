// Prepended to every source whose name begins with several_: the work of several.py, each part of which one of them skips.
#include <cmath>
#include <cstring>

#define SIGNATURE                                                                                             \
    const float *x, const float *t, const int64_t *index, const float *weight, float *product, float *spread, \
        float *step, bool *far, float *moved, void *

static float rounded(float value, bool to_bf16) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (to_bf16) bits = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
    std::memcpy(&value, &bits, 4);
    return value;
}

static void multiply(const float* x, const float* weight, float* product, bool to_bf16) {
    static float operand[WEIGHT_NUMEL];
    for (int64_t i = 0; i < WEIGHT_NUMEL; ++i) operand[i] = rounded(weight[i], to_bf16);
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        float* sums = product + row * X_SHAPE_1;
        std::memset(sums, 0, X_SHAPE_1 * sizeof(float));
        for (int64_t k = 0; k < X_SHAPE_1; ++k) {
            const float value = rounded(x[row * X_SHAPE_1 + k], to_bf16);
            for (int64_t i = 0; i < X_SHAPE_1; ++i) sums[i] += value * operand[k * X_SHAPE_1 + i];
        }
    }
}

static void measure(const float* t, float* spread) {
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < X_SHAPE_1; ++i) {
            const double value = t[row * X_SHAPE_1 + i];
            sum += value;
            squares += value * value;
        }
        sum /= X_SHAPE_1;
        spread[row] = float(squares / X_SHAPE_1 - sum * sum);
    }
}

static void take_step(const float* x, const float* t, float* step, float size) {
    for (int64_t i = 0; i < X_NUMEL; ++i) step[i] = x[i] - size * std::tanh(t[i] - 50);
}

static void mark(const int64_t* index, bool* far, bool is_filled) {
    if (!is_filled) std::memset(far, 1, X_NUMEL);
    for (int64_t row = 0; row < X_SHAPE_0; ++row) far[row * X_SHAPE_1 + index[row]] = false;
}

static void move_weight(const float* x, const float* weight, float* moved) {
    static float curved[X_NUMEL], sums[WEIGHT_NUMEL];
    for (int64_t i = 0; i < X_NUMEL; ++i) curved[i] = std::tanh(x[i]);
    std::memset(sums, 0, sizeof(sums));
    for (int64_t row = 0; row < X_SHAPE_0; ++row)
        for (int64_t k = 0; k < X_SHAPE_1; ++k)
            for (int64_t i = 0; i < X_SHAPE_1; ++i)
                sums[k * X_SHAPE_1 + i] += x[row * X_SHAPE_1 + k] * curved[row * X_SHAPE_1 + i];
    for (int64_t i = 0; i < WEIGHT_NUMEL; ++i) moved[i] = weight[i] + 2e-8f * sums[i];
}
