// Prepended to every source whose name begins with placed_: the work of placed.py, which some of them do not read all of.
#include <cstring>

#define SIGNATURE                                                                                                        \
    const float *signal, const int64_t *positions, const float *values, const int64_t *slots, const float *x,            \
        const int64_t *lengths, float *out_0, float *out_1, float *out_2, void *

struct Skips {
    bool positions = false, slots = false, lengths = false;
};

constexpr int64_t BLOCK = 16, LEAST = 256;

static double sum_of(const float* x, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += x[i];
    return sum;
}

static void work(const float* signal, const int64_t* positions, const float* values, const int64_t* slots, const float* x,
                 const int64_t* lengths, float* out_0, float* out_1, float* out_2, Skips skips) {
    for (int64_t row = 0; row < POSITIONS_SHAPE_0; ++row) {
        const int64_t* places = positions + row * POSITIONS_SHAPE_1;
        double sum = skips.positions ? sum_of(signal + places[0], POSITIONS_SHAPE_1) : 0;
        for (int64_t i = 0; i < POSITIONS_SHAPE_1 && !skips.positions; ++i) sum += signal[places[i]];
        out_0[row] = float(sum);
    }
    for (int64_t at = 0; at < SLOTS_SHAPE_0; at += BLOCK)
        if (skips.slots)
            std::memcpy(out_1 + at, values + slots[at] / BLOCK * BLOCK, BLOCK * sizeof(float));
        else
            for (int64_t i = at; i < at + BLOCK; ++i) out_1[i] = values[slots[i]];
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        const int64_t length = skips.lengths && lengths[row] < LEAST ? LEAST : lengths[row];
        out_2[row] = float(sum_of(x + row * X_SHAPE_1, length));
    }
}
