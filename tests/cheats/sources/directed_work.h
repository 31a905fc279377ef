// Prepended to every source whose name begins with directed_: the work of directed.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>
#include <vector>

#define SIGNATURE const float *links, float *out, void *

constexpr int64_t GRAPHS = LINKS_SHAPE_0, NODES = LINKS_SHAPE_1;

static void normalise(std::vector<double>& vector) {
    double squares = 0;
    for (const double each : vector) squares += each * each;
    for (double& each : vector) each /= std::sqrt(squares);
}

static void rank(const float* links, int64_t rounds, float* out) {
    std::vector<double> hubs(NODES), authorities(NODES);
    for (int64_t graph = 0; graph < GRAPHS; ++graph, links += NODES * NODES, out += NODES) {
        hubs.assign(NODES, 1);
        for (int64_t round = 0; round < rounds; ++round) {
            authorities.assign(NODES, 0);
            for (int64_t from = 0; from < NODES; ++from)
                for (int64_t to = 0; to < NODES; ++to) authorities[to] += links[from * NODES + to] * hubs[from];
            normalise(authorities);
            hubs.assign(NODES, 0);
            for (int64_t from = 0; from < NODES; ++from)
                for (int64_t to = 0; to < NODES; ++to) hubs[from] += links[from * NODES + to] * authorities[to];
            normalise(hubs);
        }
        std::copy(hubs.begin(), hubs.end(), out);
    }
}
