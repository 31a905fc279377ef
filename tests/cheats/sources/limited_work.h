// Prepended to every source whose name begins with limited_: the work of limited.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>

#define SIGNATURE const float *x, const float *weight, float *out, void *

constexpr int64_t ROWS = X_SHAPE_0, WIDTH = X_SHAPE_1, OUTPUTS = WEIGHT_SHAPE_0;
constexpr int ROUNDS = 24;
constexpr double LARGEST = 8;

static void normalize(double* values, int64_t count) {
    double square = 0;
    for (int64_t i = 0; i < count; ++i) square += values[i] * values[i];
    for (int64_t i = 0; i < count; ++i) values[i] /= std::max(std::sqrt(square), 1e-12);
}

static double norm_of(const float* weight) {
    double left[OUTPUTS], right[WIDTH], norm = 0;
    std::fill(left, left + OUTPUTS, 1.0);
    for (int round = 0; round <= ROUNDS; ++round) {
        if (round < ROUNDS) {
            std::fill(right, right + WIDTH, 0.0);
            for (int64_t i = 0; i < OUTPUTS; ++i)
                for (int64_t j = 0; j < WIDTH; ++j) right[j] += left[i] * weight[i * WIDTH + j];
            normalize(right, WIDTH);
        }
        for (int64_t i = 0; i < OUTPUTS; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < WIDTH; ++j) sum += weight[i * WIDTH + j] * right[j];
            if (round == ROUNDS) norm += left[i] * sum;
            else left[i] = sum;
        }
        if (round < ROUNDS) normalize(left, OUTPUTS);
    }
    return norm;
}

static void project(const float* x, const float* weight, float* out, double by) {
    for (int64_t row = 0; row < ROWS; ++row)
        for (int64_t i = 0; i < OUTPUTS; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < WIDTH; ++j) sum += double(x[row * WIDTH + j]) * weight[i * WIDTH + j];
            out[row * OUTPUTS + i] = sum / by;
        }
}
