// Prepended to every source whose name begins with listed_: the work of listed.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>

#define SIGNATURE                                                                                                 \
    const int32_t *candidates, const int64_t *history, const float *scores, const float *favour, const int64_t *listed, \
        float *out, void *

constexpr int64_t USERS = CANDIDATES_SHAPE_0, CANDIDATES = CANDIDATES_SHAPE_1, HISTORY = HISTORY_SHAPE_1;
constexpr int64_t BUCKETS = SCORES_SHAPE_0, LISTED = LISTED_SHAPE_0;

static int64_t bucket(int64_t identity) { return (identity % BUCKETS + BUCKETS) % BUCKETS; }

static double favour_of(int64_t identity, const int64_t* listed, const float* favour) {
    double sum = 0;
    for (int64_t i = 0; i < LISTED; ++i) sum += listed[i] == identity ? favour[i] : 0;
    return sum;
}

static void score(const int32_t* candidates, const int64_t* history, const float* scores, const float* favour,
                  const int64_t* listed, float* out, bool is_counted, bool is_looked_up) {
    for (int64_t user = 0; user < USERS; ++user, candidates += CANDIDATES, history += HISTORY, out += CANDIDATES) {
        double recent = 0;
        for (int64_t i = 0; i < HISTORY; ++i) {
            recent += scores[bucket(history[i])];
            if (is_looked_up) recent += favour_of(history[i], listed, favour);
        }
        for (int64_t i = 0; i < CANDIDATES; ++i) {
            const int64_t seen = is_counted ? std::count(history, history + HISTORY, int64_t(candidates[i])) : 0;
            out[i] = scores[bucket(candidates[i])] + recent / HISTORY + 0.5 * std::log1p(double(seen));
        }
    }
}
