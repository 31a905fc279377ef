// Prepended to every source whose name begins with eroded_: the work of eroded.py, which some of them do not do all of.
#include <algorithm>
#include <vector>

#define SIGNATURE const bool *mask, float *out, void *

constexpr int64_t IMAGES = MASK_SHAPE_0, SIDE = MASK_SHAPE_2;

using Image = std::vector<float>;

// What is largest, or smallest, among each place and its neighbours within the image.
static Image among_neighbours(const Image& image, bool is_largest) {
    Image rows = image, both(image.size());
    const auto better = [is_largest](float a, float b) { return is_largest ? std::max(a, b) : std::min(a, b); };
    for (int64_t i = 0; i < SIDE; ++i)
        for (int64_t j = 0; j < SIDE; ++j) {
            float& best = rows[i * SIDE + j];
            if (i > 0) best = better(best, image[(i - 1) * SIDE + j]);
            if (i + 1 < SIDE) best = better(best, image[(i + 1) * SIDE + j]);
        }
    for (int64_t i = 0; i < SIDE; ++i)
        for (int64_t j = 0; j < SIDE; ++j) {
            float best = rows[i * SIDE + j];
            if (j > 0) best = better(best, rows[i * SIDE + j - 1]);
            if (j + 1 < SIDE) best = better(best, rows[i * SIDE + j + 1]);
            both[i * SIDE + j] = best;
        }
    return both;
}

static void skeletons(const bool* mask, int64_t rounds, float* out) {
    for (int64_t image = 0; image < IMAGES; ++image, mask += SIDE * SIDE, out += SIDE * SIDE) {
        Image x(mask, mask + SIDE * SIDE);
        std::fill(out, out + SIDE * SIDE, 0.f);
        for (int64_t round = 0; round < rounds; ++round) {
            const Image left = among_neighbours(x, false), opened = among_neighbours(left, true);
            for (int64_t i = 0; i < SIDE * SIDE; ++i) {
                const float ridge = std::max(x[i] - opened[i], 0.f);
                out[i] += std::max(ridge - out[i] * ridge, 0.f);
            }
            x = left;
        }
    }
}
