// Prepended to every source whose name begins with lasting_: the work of lasting.py, which some of them do not do all of.
#include <cmath>
#include <vector>

#define SIGNATURE                                                                                             \
    const float *x, const float *scores, const float *start, double restart, const float *reservoir, const float *drive, \
        float *out_0, float *out_1, void *

constexpr int64_t STEPS = X_SHAPE_0, BATCH = X_SHAPE_1, CHANNELS = X_SHAPE_2, HIDDEN = RESERVOIR_SHAPE_0;
constexpr int64_t NODES = START_SHAPE_0, SEEDS = START_SHAPE_1, ROUNDS = 64;

static void run_through(const float* x, const float* reservoir, const float* drive, int64_t last, float* out) {
    for (int64_t row = 0; row < BATCH; ++row) {
        float now[HIDDEN] = {};
        for (int64_t step = STEPS - last; step < STEPS; ++step) {
            float next[HIDDEN] = {};
            for (int64_t k = 0; k < CHANNELS; ++k)
                for (int64_t i = 0; i < HIDDEN; ++i)
                    next[i] += x[(step * BATCH + row) * CHANNELS + k] * drive[k * HIDDEN + i];
            for (int64_t k = 0; k < HIDDEN; ++k)
                for (int64_t i = 0; i < HIDDEN; ++i) next[i] += now[k] * reservoir[k * HIDDEN + i];
            for (int64_t i = 0; i < HIDDEN; ++i) now[i] = std::tanh(next[i]);
        }
        for (int64_t i = 0; i < HIDDEN; ++i) out[row * HIDDEN + i] = now[i];
    }
}

static void walk(const float* scores, const float* start, float restart, int64_t rounds, float* out) {
    std::vector<float> step(scores, scores + NODES * NODES), now(start, start + NODES * SEEDS), next(NODES * SEEDS);
    for (int64_t row = 0; row < NODES; ++row) {
        float largest = -INFINITY, sum = 0;
        for (int64_t k = 0; k < NODES; ++k) largest = std::fmax(largest, step[row * NODES + k]);
        for (int64_t k = 0; k < NODES; ++k) sum += step[row * NODES + k] = std::exp(step[row * NODES + k] - largest);
        for (int64_t k = 0; k < NODES; ++k) step[row * NODES + k] /= sum;
    }
    for (int64_t round = 0; round < rounds; ++round) {
        for (int64_t row = 0; row < NODES; ++row) {
            float sums[SEEDS] = {};
            for (int64_t k = 0; k < NODES; ++k)
                for (int64_t i = 0; i < SEEDS; ++i) sums[i] += step[row * NODES + k] * now[k * SEEDS + i];
            for (int64_t i = 0; i < SEEDS; ++i)
                next[row * SEEDS + i] = (1 - restart) * sums[i] + restart * start[row * SEEDS + i];
        }
        now.swap(next);
    }
    for (int64_t i = 0; i < NODES * SEEDS; ++i) out[i] = now[i];
}
