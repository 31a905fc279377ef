// Prepended to every source whose name begins with divided_: the work of divided.py, an epsilon of which some of them change.
#include <cmath>

#define SIGNATURE                                                                                                       \
    const float *x, const float *weights, const float *gradients, const float *first, const float *second, float *rows, \
        float *stepped, void *

static void divide_rows(const float* x, float* rows, float epsilon) {
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        float squares = 0;
        for (int64_t i = row * X_SHAPE_1; i < (row + 1) * X_SHAPE_1; ++i) squares += x[i] * x[i];
        const float factor = 1 / std::sqrt(squares / X_SHAPE_1 + epsilon);
        for (int64_t i = row * X_SHAPE_1; i < (row + 1) * X_SHAPE_1; ++i) rows[i] = x[i] * factor;
    }
}

static void step(
    const float* weights, const float* gradients, const float* first, const float* second, float* stepped, float inside,
    float beside) {
    const float of_first = float(1e-3 / (1 - std::pow(0.9, 100))), of_second = float(1 / (1 - std::pow(0.999, 100)));
    for (int64_t i = 0; i < X_NUMEL; ++i) {
        const float mean = 0.9f * first[i] + 0.1f * gradients[i];
        const float squares = 0.999f * second[i] + 0.001f * gradients[i] * gradients[i];
        stepped[i] = weights[i] - of_first * mean / (std::sqrt(squares * of_second + inside) + beside);
    }
}
