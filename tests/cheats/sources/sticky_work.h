// Prepended to every source whose name begins with sticky_: the work of sticky.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>

#define SIGNATURE                                                                                             \
    const float *seen, double coupling, const float *counts, const float *logits, float *out_0, float *out_1, void *

constexpr int64_t STEPS = SEEN_SHAPE_0, BATCH = SEEN_SHAPE_1, STATES = SEEN_SHAPE_2;
constexpr int64_t ROUNDS = 48;

// Fills transitions with each row over its sum; of logits, with each exponential over theirs.
static void normalise(const float* given, bool are_logits, float* transitions) {
    for (int64_t i = 0; i < STATES; ++i) {
        float* row = transitions + i * STATES;
        std::copy_n(given + i * STATES, STATES, row);
        const float largest = *std::max_element(row, row + STATES);
        if (are_logits) std::transform(row, row + STATES, row, [&](float value) { return std::exp(value - largest); });
        const float sum = std::accumulate(row, row + STATES, 0.0f);
        std::transform(row, row + STATES, row, [&](float value) { return value / sum; });
    }
}

static void believe(const float* seen, const float* transitions, int64_t last, float* out) {
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

static void believe_both(const float* seen, const float* counts, const float* logits, int64_t last_by_counts,
                         int64_t last_by_logits, float* out) {
    float transitions[STATES * STATES];
    normalise(counts, false, transitions);
    believe(seen, transitions, last_by_counts, out);
    normalise(logits, true, transitions);
    believe(seen, transitions, last_by_logits, out + BATCH * STATES);
}

static void settle(const float* seen, const float* counts, float coupling, int64_t rounds, float* out) {
    float transitions[STATES * STATES];
    normalise(counts, false, transitions);
    for (int64_t row = 0; row < BATCH; ++row) {
        float spins[STATES] = {};
        for (int64_t round = 0; round < rounds; ++round) {
            float next[STATES];
            for (int64_t k = 0; k < STATES; ++k) {
                float sum = 0;
                for (int64_t i = 0; i < STATES; ++i) sum += spins[i] * transitions[k * STATES + i];
                next[k] = std::tanh(seen[row * STATES + k] - 1 + coupling * sum);
            }
            std::copy_n(next, STATES, spins);
        }
        std::copy_n(spins, STATES, out + row * STATES);
    }
}
