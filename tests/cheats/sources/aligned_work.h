// Prepended to every source whose name begins with aligned_: the work of aligned.py, which one of them does not do all of.
#include <algorithm>
constexpr int64_t PAIRS = X_SHAPE_0, PLACES = X_SHAPE_1;

// Fills the places of each pair's table that are at most so far from its diagonal.
static void align(const int64_t* x, const int64_t* y, int64_t band, int64_t* out) {
    constexpr int64_t FAR = 4 * PLACES;
    for (int64_t pair = 0; pair < PAIRS; ++pair) {
        int64_t row[PLACES + 1];
        for (int64_t j = 0; j <= PLACES; ++j) row[j] = j <= band ? j : FAR;
        for (int64_t i = 0; i < PLACES; ++i) {
            const int64_t first = std::max<int64_t>(0, i - band), end = std::min(PLACES, i + band + 1);
            int64_t diagonal = row[first], left = first ? FAR : i + 1;
            row[first] = left;
            for (int64_t j = first; j < end; ++j) {
                const int64_t differs = x[pair * PLACES + i] != y[pair * PLACES + j];
                left = std::min(std::min(row[j + 1], left) + 1, diagonal + differs);
                diagonal = row[j + 1];
                row[j + 1] = left;
            }
        }
        out[pair] = row[PLACES];
    }
}
