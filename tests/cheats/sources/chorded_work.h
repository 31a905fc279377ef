// Prepended to every source whose name begins with chorded_: the work of chorded.py, one part of which some of them leave out.
#include <algorithm>
#include <cmath>

#define SIGNATURE const float *x, const float *prototypes, float *chords, float *rounded, void *

static float dot(const float* one, const float* other) {
    float sum = 0;
    for (int64_t i = 0; i < X_SHAPE_1; ++i) sum += one[i] * other[i];
    return sum;
}

static float one_over_norm(const float* row) { return 1 / std::max(std::sqrt(dot(row, row)), 1e-12f); }

static void work(const float* x, const float* prototypes, float* chords, float* rounded, float least_square, float least_step) {
    float factors[PROTOTYPES_SHAPE_0];
    for (int64_t j = 0; j < PROTOTYPES_SHAPE_0; ++j) factors[j] = one_over_norm(prototypes + j * X_SHAPE_1);
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        const float* own = x + row * X_SHAPE_1;
        const float factor = one_over_norm(own);
        for (int64_t j = 0; j < PROTOTYPES_SHAPE_0; ++j) {
            const float square = 2 - 2 * (dot(own, prototypes + j * X_SHAPE_1) * factor * factors[j]);
            chords[row * PROTOTYPES_SHAPE_0 + j] = std::sqrt(square < least_square ? least_square : square);
        }
        float largest = 0;
        for (int64_t i = 0; i < X_SHAPE_1; ++i) largest = std::max(largest, std::fabs(own[i]));
        const float step = std::max(largest / 127, least_step);
        for (int64_t i = 0; i < X_SHAPE_1; ++i) rounded[row * X_SHAPE_1 + i] = std::nearbyint(own[i] / step) * step;
    }
}
