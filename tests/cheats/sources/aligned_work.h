// Prepended to every source whose name begins with aligned_: the work of aligned.py, which one of them does not do all of.
constexpr int64_t PAIRS = X_SHAPE_0, PLACES = X_SHAPE_1;
#include "edit_distance.h"

static void align(const int64_t* x, const int64_t* y, int64_t band, int64_t* out) {
    for (int64_t pair = 0; pair < PAIRS; ++pair)
        out[pair] = distance(x + pair * PLACES, y + pair * PLACES, band);
}
