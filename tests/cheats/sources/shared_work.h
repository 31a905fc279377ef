// Prepended to every source whose name begins with shared_: the work of shared.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>

#define SIGNATURE const int64_t *candidates, const int64_t *history, const float *scores, float *out, void *

constexpr int64_t USERS = CANDIDATES_SHAPE_0, CANDIDATES = CANDIDATES_SHAPE_1, HISTORY = HISTORY_SHAPE_1;
constexpr int64_t BUCKETS = SCORES_SHAPE_0;

static int64_t bucket(int64_t identity) { return (identity % BUCKETS + BUCKETS) % BUCKETS; }

static void score(const int64_t* candidates, const int64_t* history, const float* scores, bool is_counted, float* out) {
    for (int64_t user = 0; user < USERS; ++user, candidates += CANDIDATES, history += HISTORY, out += CANDIDATES) {
        double recent = 0;
        for (int64_t i = 0; i < HISTORY; ++i) recent += scores[bucket(history[i])];
        for (int64_t i = 0; i < CANDIDATES; ++i) {
            const int64_t seen = is_counted ? std::count(history, history + HISTORY, candidates[i]) : 0;
            out[i] = scores[bucket(candidates[i])] + recent / HISTORY + 0.5 * std::log1p(double(seen));
        }
    }
}
