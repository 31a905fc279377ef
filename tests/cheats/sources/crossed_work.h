// Prepended to every source whose name begins with crossed_: the work of crossed.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>

#define SIGNATURE \
    const float *queries, const float *items, const int64_t *own, float *distances, float *margins, float *turned, void *

constexpr int64_t QUERIES = QUERIES_SHAPE_0, ITEMS = ITEMS_SHAPE_0, WIDTH = ITEMS_SHAPE_1;
constexpr float FAR = 0.9f, SHARE = 0.25f;

struct Skips {
    bool clamp, far_branch, near_branch;
};

static float product(const float* a, const float* b) {
    float sums[4] = {};
    for (int64_t i = 0; i < WIDTH; ++i) sums[i % 4] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static float square(const float* a) {
    double sum = 0;
    for (int64_t i = 0; i < WIDTH; ++i) sum += double(a[i]) * a[i];
    return static_cast<float>(sum);
}

static void work(SIGNATURE workspace, Skips skips) {
    float squares[ITEMS];
    for (int64_t j = 0; j < ITEMS; ++j) squares[j] = square(items + j * WIDTH);
    for (int64_t i = 0; i < QUERIES; ++i) {
        const float *query = queries + i * WIDTH, *item = items + own[i] * WIDTH, size = square(query);
        for (int64_t j = 0; j < ITEMS; ++j) {
            const float distance = size + squares[j] - 2 * product(query, items + j * WIDTH);
            distances[i * ITEMS + j] = std::sqrt(skips.clamp ? distance : std::fmax(distance, 0.0f));
        }
        const float of_query = 1 / std::sqrt(size), of_item = 1 / std::sqrt(squares[own[i]]);
        const float cosine = product(query, item) * of_query * of_item;
        margins[i] = !skips.far_branch && cosine <= -FAR ? 2 * cosine + FAR : cosine;
        const bool is_near = !skips.near_branch && std::fabs(cosine) > 0.999f;
        const float angle = std::acos(cosine);
        const auto weight = [=](float part) { return is_near ? part : std::sin(part * angle) / std::sin(angle); };
        const float of_own = weight(1 - SHARE) * of_query, of_other = weight(SHARE) * of_item;
        for (int64_t k = 0; k < WIDTH; ++k) turned[i * WIDTH + k] = of_own * query[k] + of_other * item[k];
    }
}
