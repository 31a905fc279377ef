// Prepended to every source whose name begins with lined_: the work of lined.py, which some of them do not do all of.
#include <cmath>
#include "shortest_paths.h"

#define SIGNATURE const float *logs, float *out, void *

constexpr int64_t PLACES = LOGS_SHAPE_0, SOURCES = OUT_SHAPE_0;

static void reach(const float* logs, int64_t rounds, float* out) {
    std::vector<float> lengths(PLACES * PLACES);
    for (int64_t i = 0; i < PLACES * PLACES; ++i) lengths[i] = std::exp(logs[i]);
    for (int64_t source = 0; source < SOURCES; ++source)
        relax(lengths.data() + source * PLACES, lengths.data(), PLACES, rounds, out + source * PLACES);
}
