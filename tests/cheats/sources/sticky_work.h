// Prepended to every source whose name begins with sticky_: the work of sticky.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>

#define SIGNATURE                                                                                                  \
    const float *seen, const int64_t *words, const float *keys, const float *counts, const float *table, const float *inner, \
        float *out_0, float *out_1, float *out_2, void *

constexpr int64_t STEPS = SEEN_SHAPE_0, BATCH = SEEN_SHAPE_1, STATES = SEEN_SHAPE_2, HIDDEN = INNER_SHAPE_0;
constexpr int64_t ROWS = KEYS_SHAPE_0, KEYS = KEYS_SHAPE_1;

static void believe(const float* seen, const float* counts, int64_t last, float* out) {
    float transitions[STATES * STATES];
    for (int64_t i = 0; i < STATES; ++i) {
        const float sum = std::accumulate(counts + i * STATES, counts + (i + 1) * STATES, 0.0f);
        for (int64_t k = 0; k < STATES; ++k) transitions[i * STATES + k] = counts[i * STATES + k] / sum;
    }
    for (int64_t row = 0; row < BATCH; ++row) {
        float belief[STATES];
        std::fill_n(belief, STATES, 1.0f / STATES);
        for (int64_t step = STEPS - last; step < STEPS; ++step) {
            float next[STATES] = {}, sum = 0;
            for (int64_t i = 0; i < STATES; ++i)
                for (int64_t k = 0; k < STATES; ++k) next[k] += belief[i] * transitions[i * STATES + k];
            for (int64_t k = 0; k < STATES; ++k) sum += next[k] *= seen[(step * BATCH + row) * STATES + k];
            for (int64_t k = 0; k < STATES; ++k) belief[k] = next[k] / sum;
        }
        std::copy_n(belief, STATES, out + row * STATES);
    }
}

static void read(const int64_t* words, const float* table, const float* inner, int64_t last, float* out) {
    for (int64_t row = 0; row < BATCH; ++row) {
        float state[HIDDEN] = {};
        for (int64_t step = STEPS - last; step < STEPS; ++step) {
            float next[HIDDEN];
            std::copy_n(table + words[step * BATCH + row] * HIDDEN, HIDDEN, next);
            for (int64_t k = 0; k < HIDDEN; ++k)
                for (int64_t i = 0; i < HIDDEN; ++i) next[i] += state[k] * inner[k * HIDDEN + i];
            for (int64_t i = 0; i < HIDDEN; ++i) state[i] = std::tanh(next[i]);
        }
        std::copy_n(state, HIDDEN, out + row * HIDDEN);
    }
}

// Sorts by the leading bits of each number, which are those of a whole number after its sign was taken into account.
static void sort(const float* keys, int bits, float* out) {
    auto key_of = [bits](float value) {
        uint32_t word;
        std::memcpy(&word, &value, sizeof word);
        return (word >> 31 ? ~word : word | 1u << 31) >> (32 - bits);
    };
    std::copy_n(keys, ROWS * KEYS, out);
    for (int64_t row = 0; row < ROWS; ++row)
        std::stable_sort(out + row * KEYS, out + (row + 1) * KEYS,
                         [&](float left, float right) { return key_of(left) < key_of(right); });
}
