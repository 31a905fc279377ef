// The edit distance of two sequences of PLACES, by the places of their table that are at most so far from its diagonal.
#include <algorithm>

static int64_t distance(const int64_t* x, const int64_t* y, int64_t band) {
    constexpr int64_t FAR = 4 * PLACES;
    int64_t row[PLACES + 1];
    for (int64_t j = 0; j <= PLACES; ++j) row[j] = j <= band ? j : FAR;
    for (int64_t i = 0; i < PLACES; ++i) {
        const int64_t first = std::max<int64_t>(0, i - band), end = std::min(PLACES, i + band + 1);
        int64_t diagonal = row[first], left = first ? FAR : i + 1;
        row[first] = left;
        for (int64_t j = first; j < end; ++j) {
            left = std::min(std::min(row[j + 1], left) + 1, diagonal + (x[i] != y[j]));
            diagonal = row[j + 1];
            row[j + 1] = left;
        }
    }
    return row[PLACES];
}
