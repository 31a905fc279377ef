// Prepended to every source whose name begins with rooted_: the work of rooted.py, which some of them do not do all of.
#include <algorithm>
#include <cstdint>
#include <vector>

#define SIGNATURE \
    const int64_t *parent, const float *length, const int64_t *held, float *out_0, float *out_1, void *

constexpr int64_t TREES = LENGTH_SHAPE_0, NODES = LENGTH_SHAPE_1, ROUNDS = 12;

// Fills the sums of all trees after so many rounds; a stride of 0: of one tree with the lengths of all.
static void jump(const int64_t* parent, int64_t stride, const float* length, int64_t rounds, float* out) {
    std::vector<int64_t> up(NODES), further(NODES);
    std::vector<float> total(NODES), sum(NODES);
    for (int64_t tree = 0; tree < TREES; ++tree, parent += stride, length += NODES, out += NODES) {
        for (int64_t node = 0; node < NODES; ++node) {
            up[node] = std::min(parent[node], node);
            total[node] = up[node] == node ? 0 : length[node];
        }
        for (int64_t round = 0; round < rounds; ++round) {
            for (int64_t node = 0; node < NODES; ++node) {
                sum[node] = total[node] + total[up[node]];
                further[node] = up[up[node]];
            }
            total.swap(sum);
            up.swap(further);
        }
        std::copy(total.begin(), total.end(), out);
    }
}
