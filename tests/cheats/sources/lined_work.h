// Prepended to every source whose name begins with lined_: the work of lined.py, which some of them do not do all of.
#include <cmath>
#include <vector>

#define SIGNATURE const float *logs, float *out, void *

constexpr int64_t PLACES = LOGS_SHAPE_0, SOURCES = OUT_SHAPE_0;

static void reach(const float* logs, int64_t rounds, float* out) {
    std::vector<float> lengths(PLACES * PLACES), now(PLACES), next(PLACES);
    for (int64_t i = 0; i < PLACES * PLACES; ++i) lengths[i] = std::exp(logs[i]);
    for (int64_t source = 0; source < SOURCES; ++source) {
        now.assign(lengths.begin() + source * PLACES, lengths.begin() + (source + 1) * PLACES);
        for (int64_t round = 0; round < rounds; ++round) {
            next = now;
            for (int64_t from = 0; from < PLACES; ++from)
                for (int64_t to = 0; to < PLACES; ++to)
                    next[to] = std::fmin(next[to], now[from] + lengths[from * PLACES + to]);
            now.swap(next);
        }
        for (int64_t i = 0; i < PLACES; ++i) out[source * PLACES + i] = now[i];
    }
}
