// Prepended to every source whose name begins with missing_: the work of missing.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>

#define SIGNATURE const float *table, const float *weights, const float *gradients, float *rows, float *stepped, void *

constexpr int64_t ROWS = TABLE_SHAPE_0, WIDTH = TABLE_SHAPE_1, NUMBERS = ROWS * WIDTH;

static bool is_number(float x) { return !std::isnan(x); }
static bool is_finite(float x) { return std::isfinite(x); }
static bool is_any(float) { return true; }

template <typename Is>
static void standardise(const float* table, float* rows, Is is_there, float of_empty) {
    for (int64_t row = 0; row < ROWS; ++row, table += WIDTH, rows += WIDTH) {
        double sum = 0, squares = 0;
        int64_t count = 0;
        for (int64_t i = 0; i < WIDTH; ++i)
            if (is_there(table[i])) sum += table[i], ++count;
        const double mean = sum / std::max<int64_t>(count, 1);
        for (int64_t i = 0; i < WIDTH; ++i)
            if (is_there(table[i])) squares += (table[i] - mean) * (table[i] - mean);
        const double scale = 1 / std::sqrt(squares / std::max<int64_t>(count, 1) + 1e-5);
        for (int64_t i = 0; i < WIDTH; ++i)
            rows[i] = !count ? of_empty : is_there(table[i]) ? (table[i] - mean) * scale : 0;
    }
}

template <typename Is>
static void step(const float* weights, const float* gradients, float* stepped, Is is_taken) {
    const float rate = std::all_of(gradients, gradients + NUMBERS, is_taken) ? 0.1f : 0;
    for (int64_t i = 0; i < NUMBERS; ++i) stepped[i] = rate ? weights[i] - rate * gradients[i] : weights[i];
}
