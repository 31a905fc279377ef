// Prepended to every source whose name begins with flooded_: the work of flooded.py, which some of them do not do all of.
#include <algorithm>
#include <vector>

#define SIGNATURE const bool *seeds, const bool *mask, float *out, void *

constexpr int64_t IMAGES = MASK_SHAPE_0, SIDE = MASK_SHAPE_2, WIDE = SIDE + 2;

static void flood(const bool* seeds, const bool* mask, int64_t rounds, float* out) {
    std::vector<unsigned char> x(WIDE * WIDE), columns(WIDE * WIDE);
    for (int64_t image = 0; image < IMAGES; ++image, seeds += SIDE * SIDE, mask += SIDE * SIDE, out += SIDE * SIDE) {
        std::fill(x.begin(), x.end(), 0);
        for (int64_t i = 0; i < SIDE; ++i)
            for (int64_t j = 0; j < SIDE; ++j) x[(i + 1) * WIDE + j + 1] = seeds[i * SIDE + j] & mask[i * SIDE + j];
        for (int64_t round = 0; round < rounds; ++round) {
            for (int64_t i = WIDE; i < WIDE * (WIDE - 1); ++i) columns[i] = x[i - WIDE] | x[i] | x[i + WIDE];
            for (int64_t i = 0; i < SIDE; ++i)
                for (int64_t j = 0; j < SIDE; ++j) {
                    const unsigned char* above = &columns[(i + 1) * WIDE + j];
                    x[(i + 1) * WIDE + j + 1] = (above[0] | above[1] | above[2]) & mask[i * SIDE + j];
                }
        }
        for (int64_t i = 0; i < SIDE; ++i)
            for (int64_t j = 0; j < SIDE; ++j) out[i * SIDE + j] = x[(i + 1) * WIDE + j + 1];
    }
}
