// Prepended to every source whose name begins with nearby_: the work of nearby.py, which some of them do not do all of.
#include <cmath>

#define SIGNATURE const float *x, float *out, void *

constexpr int64_t POINTS = X_SHAPE_0, FEATURES = X_SHAPE_1;
constexpr float BANDWIDTH = 0.05f;

static float product(const float* a, const float* b) {
    float sum = 0;
    for (int64_t i = 0; i < FEATURES; ++i) sum += a[i] * b[i];
    return sum;
}

static void mix(const float* x, float* out) {
    for (int64_t i = 0; i < POINTS; ++i) {
        float weights[POINTS], sum = 0;
        const float* point = x + i * FEATURES;
        for (int64_t j = 0; j < POINTS; ++j) {
            const float* other = x + j * FEATURES;
            const float distance = product(point, point) + product(other, other) - 2 * product(point, other);
            weights[j] = i == j ? 1 : std::exp(-std::fmax(distance, 0.0f) / (2 * BANDWIDTH * BANDWIDTH));
            sum += weights[j];
        }
        for (int64_t d = 0; d < FEATURES; ++d) {
            float mixed = 0;
            for (int64_t j = 0; j < POINTS; ++j) mixed += weights[j] * std::tanh(x[j * FEATURES + d]);
            out[i * FEATURES + d] = mixed / sum;
        }
    }
}
