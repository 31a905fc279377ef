// Prepended to every source whose name begins with settled_: the work of settled.py, which some of them do not do all of.
#include <cmath>

#define SIGNATURE                                                                                                  \
    const float *x, const float *steps, const float *gate, const float *rate, const float *weight, const float *bias, \
        float *out_0, float *out_1, float *out_2, void *

constexpr int64_t ROWS = X_SHAPE_0, FEATURES = X_SHAPE_1, ROUNDS = 120, STEPS = STEPS_SHAPE_0, CHANNELS = STEPS_SHAPE_1;

static void find(const float* x, const float* weight, const float* bias, int64_t rounds, float* out) {
    for (int64_t row = 0; row < ROWS; ++row) {
        float now[FEATURES] = {};
        for (int64_t round = 0; round < rounds; ++round) {
            float next[FEATURES];
            for (int64_t i = 0; i < FEATURES; ++i) {
                float sum = bias[i] + x[row * FEATURES + i];
                for (int64_t k = 0; k < FEATURES; ++k) sum += now[k] * weight[i * FEATURES + k];
                next[i] = std::tanh(sum);
            }
            for (int64_t i = 0; i < FEATURES; ++i) now[i] = next[i];
        }
        for (int64_t i = 0; i < FEATURES; ++i) out[row * FEATURES + i] = now[i];
    }
}

static void carry(const float* steps, const float* gate, int64_t last, float* state) {
    for (int64_t i = 0; i < CHANNELS; ++i) {
        const float kept = 1 / (1 + std::exp(-gate[i]));
        state[i] = 0;
        for (int64_t step = STEPS - last; step < STEPS; ++step)
            state[i] = kept * state[i] + (1 - kept) * steps[step * CHANNELS + i];
    }
}

static void decay(const float* steps, const float* rate, int64_t last, float* out) {
    for (int64_t i = 0; i < CHANNELS; ++i) {
        const float kept = std::exp(-rate[i]);
        out[i] = 0;
        for (int64_t step = STEPS - last; step < STEPS; ++step) out[i] = kept * out[i] + steps[step * CHANNELS + i];
    }
}
