// Prepended to every source whose name begins with logged_: the work of logged.py, which some of them do not do all of.
#include <cmath>

#define SIGNATURE const float *x, float *out, void *

constexpr int64_t ROWS = X_SHAPE_0, COLUMNS = X_SHAPE_1;

static float largest(const float* row) {
    float found = row[0];
    for (int64_t i = 1; i < COLUMNS; ++i) found = std::fmax(found, row[i]);
    return found;
}

static void logarithms(const float* row, float less, float* out) {
    float sum = 0;
    for (int64_t i = 0; i < COLUMNS; ++i) sum += std::exp(row[i] - less);
    const float all = less + std::log(sum);
    for (int64_t i = 0; i < COLUMNS; ++i) out[i] = row[i] - all;
}
