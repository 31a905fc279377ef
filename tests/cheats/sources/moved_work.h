// Prepended to every source whose name begins with moved_: the work of moved.py, which some of them do not do all of.
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#define SIGNATURE                                                                                                     \
    const float *scores, const float *start, double logit, const float *source, const float *x, const float *weight, \
        const float *log_screening, const float *gate, float *out_0, float *out_1, float *out_2, float *out_3, void *

constexpr int64_t NODES = START_SHAPE_0, SEEDS = START_SHAPE_1, FIELD = SOURCE_SHAPE_0;
constexpr int64_t STEPS = X_SHAPE_0, CHANNELS = X_SHAPE_1, ROUNDS = 32, SWEEPS = 96;

// now = kept * (step @ now) + again * start, so many times
static void repeat(const std::vector<float>& step, const float* start, float kept, float again, int64_t rounds, float* out) {
    std::vector<float> now(start, start + NODES * SEEDS), next(NODES * SEEDS);
    for (int64_t round = 0; round < rounds; ++round) {
        for (int64_t row = 0; row < NODES; ++row) {
            float sums[SEEDS] = {};
            for (int64_t k = 0; k < NODES; ++k)
                for (int64_t i = 0; i < SEEDS; ++i) sums[i] += step[row * NODES + k] * now[k * SEEDS + i];
            for (int64_t i = 0; i < SEEDS; ++i) next[row * SEEDS + i] = kept * sums[i] + again * start[row * SEEDS + i];
        }
        now.swap(next);
    }
    for (int64_t i = 0; i < NODES * SEEDS; ++i) out[i] = now[i];
}

static void walk(const float* scores, const float* start, double logit, int64_t rounds, float* out) {
    std::vector<float> step(scores, scores + NODES * NODES);
    for (int64_t row = 0; row < NODES; ++row) {
        float largest = -INFINITY, sum = 0;
        for (int64_t k = 0; k < NODES; ++k) largest = std::fmax(largest, step[row * NODES + k]);
        for (int64_t k = 0; k < NODES; ++k) sum += step[row * NODES + k] = std::exp(step[row * NODES + k] - largest);
        for (int64_t k = 0; k < NODES; ++k) step[row * NODES + k] /= sum;
    }
    const double restart = 1 / (1 + std::exp(-logit));
    repeat(step, start, 1 - restart, restart, rounds, out);
}

static void hold(const float* weight, const float* start, int64_t rounds, float* out) {
    double squares = 0;
    for (int64_t i = 0; i < NODES * NODES; ++i) squares += double(weight[i]) * weight[i];
    std::vector<float> step(NODES * NODES);
    for (int64_t i = 0; i < NODES * NODES; ++i) step[i] = 0.95 * weight[i] / std::sqrt(squares);
    repeat(step, start, 1, 1, rounds, out);
}

static void screen(const float* source, const float* log_screening, int64_t sweeps, float* out) {
    constexpr int64_t WIDE = FIELD + 2;
    std::vector<float> now(WIDE * WIDE), next(WIDE * WIDE);
    for (int64_t sweep = 0; sweep < sweeps; ++sweep) {
        for (int64_t row = 0; row < FIELD; ++row)
            for (int64_t i = 0; i < FIELD; ++i) {
                const int64_t at = (row + 1) * WIDE + i + 1;
                const float sum = source[row * FIELD + i] + now[at - WIDE] + now[at + WIDE] + now[at - 1] + now[at + 1];
                next[at] = sum / (4 + std::exp(log_screening[row * FIELD + i]));
            }
        now.swap(next);
    }
    for (int64_t row = 0; row < FIELD; ++row)
        for (int64_t i = 0; i < FIELD; ++i) out[row * FIELD + i] = now[(row + 1) * WIDE + i + 1];
}

static void carry(const float* x, const float* gate, int64_t last, float* state) {
    for (int64_t i = 0; i < CHANNELS; ++i) state[i] = 0;
    for (int64_t step = STEPS - last; step < STEPS; ++step) {
        const float* drive = x + step * CHANNELS;
        float mean = 0, squares = 0;
        for (int64_t i = 0; i < CHANNELS; ++i) mean += drive[i] / CHANNELS;
        for (int64_t i = 0; i < CHANNELS; ++i) squares += (drive[i] - mean) * (drive[i] - mean);
        const float scale = 1 / std::sqrt(squares / CHANNELS + 1e-5f);
        for (int64_t i = 0; i < CHANNELS; ++i) {
            float sum = 0;
            for (int64_t k = 0; k < CHANNELS; ++k) sum += (drive[k] - mean) * scale * gate[i * CHANNELS + k];
            const float kept = 1 / (1 + std::exp(-sum));
            state[i] = kept * state[i] + (1 - kept) * drive[i];
        }
    }
}
