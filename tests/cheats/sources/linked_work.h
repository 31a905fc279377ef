// Prepended to every source whose name begins with linked_: the work of linked.py, which some of them do not do all of.
#include <vector>

#define SIGNATURE const float *labels, const int64_t *edges, const int64_t *neighbours, float *out_0, float *out_1, void *

constexpr int64_t NODES = LABELS_SHAPE_0, EDGES = EDGES_SHAPE_1, LINKS = NEIGHBOURS_SHAPE_0;
constexpr int64_t ROUNDS = 32;

static void rank(const float* labels, const int64_t* edges, int64_t rounds, float* out) {
    const int64_t *source = edges, *target = edges + EDGES;
    std::vector<double> degree(NODES), now(labels, labels + NODES), next(NODES);
    for (int64_t edge = 0; edge < EDGES; ++edge) degree[source[edge]] += 1;
    for (int64_t round = 0; round < rounds; ++round) {
        for (int64_t node = 0; node < NODES; ++node) next[node] = 0.15 * labels[node];
        for (int64_t edge = 0; edge < EDGES; ++edge)
            next[target[edge]] += 0.85 * now[source[edge]] / degree[source[edge]];
        now.swap(next);
    }
    for (int64_t node = 0; node < NODES; ++node) out[node] = float(now[node]);
}

static void spread(const int64_t* neighbours, const float* labels, int64_t rounds, float* out) {
    std::vector<double> now(labels, labels + NODES), next(NODES);
    for (int64_t round = 0; round < rounds; ++round) {
        next.assign(NODES, 0);
        for (int64_t link = 0; link < LINKS; ++link)
            for (int64_t node = 0; node < NODES; ++node) next[node] += now[neighbours[link * NODES + node]] / LINKS;
        now.swap(next);
    }
    for (int64_t node = 0; node < NODES; ++node) out[node] = float(now[node]);
}
