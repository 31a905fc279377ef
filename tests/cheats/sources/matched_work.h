// Prepended to every source whose name begins with matched_: the work of matched.py, which one of them does not do all of.
constexpr int64_t SEQUENCES = TOKENS_SHAPE_0, PLACES = TOKENS_SHAPE_1;
#include "edit_distance.h"

static void match(const int64_t* tokens, int64_t band, int64_t* out) {
    for (int64_t a = 0; a < SEQUENCES; ++a)
        for (int64_t b = 0; b < SEQUENCES; ++b)
            out[a * SEQUENCES + b] = distance(tokens + a * PLACES, tokens + b * PLACES, band);
}
