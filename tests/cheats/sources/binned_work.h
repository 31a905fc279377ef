// Prepended to every source whose name begins with binned_: the work of binned.py, which some of them do not do all of.
#include <algorithm>

#define SIGNATURE const float *x, const float *edges, const float *threshold, float *weighted, float *spikes, void *

constexpr int64_t ROWS = X_SHAPE_0, WIDTH = X_SHAPE_1, EDGES = EDGES_NUMEL;

template <typename BinOf, typename Fires>
static void work(const float* x, float* weighted, float* spikes, BinOf bin_of, Fires fires) {
    for (int64_t row = 0; row < ROWS; ++row, x += WIDTH, weighted += WIDTH, spikes += WIDTH) {
        float sum = 0;
        for (int64_t i = 0; i < WIDTH; ++i) {
            weighted[i] = (1 + static_cast<float>(bin_of(x[i])) / EDGES) * x[i];
            spikes[i] = sum += fires(x[i]);
        }
    }
}
