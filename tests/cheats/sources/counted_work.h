// Prepended to every source whose name begins with counted_: the work of counted.py, which some of them do not do all of.
#include <cstdint>
#include <numeric>
#include "shortest_paths.h"

#define SIGNATURE \
    const float *seen, const int64_t *counts, const int32_t *start, const int32_t *costs, float *out_0, int32_t *out_1, void *

constexpr int64_t STEPS = SEEN_SHAPE_0, BATCH = SEEN_SHAPE_1, STATES = SEEN_SHAPE_2, PLACES = COSTS_SHAPE_0;

// Fills the beliefs after the last `steps` of what was seen.
static void believe(const float* seen, const int64_t* counts, int64_t steps, float* out) {
    std::vector<float> transitions(STATES * STATES), belief(STATES), next(STATES);
    for (int64_t i = 0; i < STATES; ++i) {
        const int64_t* row = counts + i * STATES;
        const float sum = float(std::accumulate(row, row + STATES, int64_t(0)));
        for (int64_t j = 0; j < STATES; ++j) transitions[i * STATES + j] = float(row[j]) / sum;
    }
    for (int64_t each = 0; each < BATCH; ++each) {
        belief.assign(STATES, 1.0f / STATES);
        for (int64_t step = STEPS - steps; step < STEPS; ++step) {
            next.assign(STATES, 0);
            for (int64_t i = 0; i < STATES; ++i)
                for (int64_t j = 0; j < STATES; ++j) next[j] += belief[i] * transitions[i * STATES + j];
            for (int64_t j = 0; j < STATES; ++j) next[j] *= seen[(step * BATCH + each) * STATES + j];
            const float sum = std::accumulate(next.begin(), next.end(), 0.0f);
            for (int64_t j = 0; j < STATES; ++j) belief[j] = next[j] / sum;
        }
        std::copy(belief.begin(), belief.end(), out + each * STATES);
    }
}

static void reach(const int32_t* start, const int32_t* costs, int64_t rounds, int32_t* out) {
    for (int64_t each = 0; each < BATCH; ++each)
        relax(start + each * PLACES, costs, PLACES, rounds, out + each * PLACES);
}
