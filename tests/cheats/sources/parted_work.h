// Prepended to every source whose name begins with parted_: the work of parted.py, which some of them do not do all of.
#include <algorithm>
#include <cstdint>
#include <vector>

#define SIGNATURE const int64_t *labels, int32_t *out, void *

constexpr int64_t PICTURES = LABELS_SHAPE_0, HEIGHT = LABELS_SHAPE_1, WIDTH = LABELS_SHAPE_2, PLACES = HEIGHT * WIDTH;

static void part(const int64_t* labels, int64_t rounds, int32_t* out) {
    std::vector<int32_t> area(PLACES), next(PLACES);
    for (int64_t picture = 0; picture < PICTURES; ++picture, labels += PLACES, out += PLACES) {
        for (int64_t i = 0; i < PLACES; ++i) area[i] = int32_t(i);
        for (int64_t round = 0; round < rounds; ++round) {
            next = area;
            const auto join = [&](int64_t i, int64_t j) {
                if (labels[i] != labels[j]) return;
                next[i] = std::max(next[i], area[j]);
                next[j] = std::max(next[j], area[i]);
            };
            for (int64_t i = 0; i < PLACES; ++i) {
                if (i % WIDTH) join(i, i - 1);
                if (i >= WIDTH) join(i, i - WIDTH);
            }
            area.swap(next);
        }
        std::copy(area.begin(), area.end(), out);
    }
}
