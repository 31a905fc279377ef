// Prepended to every source whose name begins with closed_: the work of closed.py, of which some leave an end or a limit out.
#include <algorithm>
#include <cmath>

#define SIGNATURE const float *pictures, const float *table, float *out_0, float *out_1, float *out_2, void *

constexpr int BINS = 50;

static void spread(const float* pictures, float* out, bool has_end) {
    constexpr int64_t n = PICTURES_SHAPE_1;
    for (int64_t row = 0; row < PICTURES_SHAPE_0; ++row) {
        const float* x = pictures + row * n;
        int counts[BINS] = {}, all = 0;
        for (int64_t i = 0; i < n; ++i) {
            if (!(x[i] >= 0 && (has_end ? x[i] <= 1 : x[i] < 1))) continue;
            ++counts[std::min(BINS - 1, int(x[i] * BINS))];
            ++all;
        }
        float shares[BINS + 1] = {};
        for (int bin = 0, sum = 0; bin < BINS; ++bin) shares[bin + 1] = float(sum += counts[bin]) / std::max(all, 1);
        for (int64_t i = 0; i < n; ++i) {
            const float place = std::min(1.0f, std::max(0.0f, x[i])) * BINS;
            const int below = std::min(BINS - 1, int(place));
            const float part = place - below;
            out[row * n + i] = shares[below] * (1 - part) + shares[below + 1] * part;
        }
    }
}

static void keep_large(const float* table, float* out, bool has_limit) {
    for (int64_t i = 0; i < TABLE_NUMEL; ++i) out[i] = (has_limit ? table[i] >= 0.75f : table[i] > 0.75f) ? table[i] : 0;
}

static void leave_missing_out(const float* table, float* out, float missing) {
    for (int64_t i = 0; i < TABLE_NUMEL; ++i) out[i] = table[i] != missing ? table[i] : 0;
}
