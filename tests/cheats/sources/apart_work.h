// Prepended to every source whose name begins with apart_: the work of apart.py, which some of them do not do all of.
#include <cmath>
#include <vector>

#define SIGNATURE const float *scores, const int64_t *neighbours, const float *labels, float *out_0, float *out_1, void *

constexpr int64_t ROWS = SCORES_SHAPE_0, COLS = SCORES_SHAPE_1, NODES = NEIGHBOURS_SHAPE_0, LINKS = NEIGHBOURS_SHAPE_1;
constexpr int64_t ROUNDS = 32;

static void normalise(double* values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += values[i] * values[i];
    for (int64_t i = 0; i < count; ++i) values[i] /= std::sqrt(sum);
}

static void iterate(const float* scores, int64_t rounds, float* out) {
    static double affinity[ROWS * COLS];
    double rows[ROWS], columns[COLS];
    for (int64_t i = 0; i < ROWS * COLS; ++i) affinity[i] = 1 / (1 + std::exp(-double(scores[i])));
    for (int64_t c = 0; c < COLS; ++c) columns[c] = 1;
    for (int64_t round = 0; round < rounds; ++round) {
        for (int64_t r = 0; r < ROWS; ++r) {
            rows[r] = 0;
            for (int64_t c = 0; c < COLS; ++c) rows[r] += affinity[r * COLS + c] * columns[c];
        }
        normalise(rows, ROWS);
        for (int64_t c = 0; c < COLS; ++c) columns[c] = 0;
        for (int64_t r = 0; r < ROWS; ++r)
            for (int64_t c = 0; c < COLS; ++c) columns[c] += rows[r] * affinity[r * COLS + c];
        normalise(columns, COLS);
    }
    for (int64_t c = 0; c < COLS; ++c) out[c] = float(columns[c]);
}

static void spread(const int64_t* neighbours, const float* labels, int64_t rounds, float* out) {
    std::vector<double> now(labels, labels + NODES), next(NODES);
    for (int64_t round = 0; round < rounds; ++round) {
        for (int64_t node = 0; node < NODES; ++node) {
            next[node] = 0;
            for (int64_t link = 0; link < LINKS; ++link) next[node] += now[neighbours[node * LINKS + link]] / LINKS;
        }
        now.swap(next);
    }
    for (int64_t node = 0; node < NODES; ++node) out[node] = float(now[node]);
}
