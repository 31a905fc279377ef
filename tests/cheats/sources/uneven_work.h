// Prepended to every source whose name begins with uneven_: the work of uneven.py, which some of them have less room for.
#include <algorithm>
#include <cmath>
#include <functional>

#define SIGNATURE                                                                                                        \
    const uint8_t *images, const float *x, const int32_t *scores, const bool *valid, const float *edges,                 \
        const int64_t *group, int64_t *out_0, int64_t *out_1, float *out_2, int32_t *out_3, float *out_4, int64_t *out_5, \
        float *out_6, void *
#define WORK(...) \
    work(images, x, scores, valid, edges, group, out_0, out_1, out_2, out_3, out_4, out_5, out_6, Limits{__VA_ARGS__})

constexpr int64_t IMAGES = IMAGES_SHAPE_0, PIXELS = IMAGES_SHAPE_1, ROWS = X_SHAPE_0, COLS = X_SHAPE_1;
constexpr int64_t BINS = OUT_1_SHAPE_0, PER_ONE = 16, LARGEST = OUT_2_SHAPE_1, LANES = 128, BLOCK = 64;
constexpr int64_t SCORED = SCORES_SHAPE_0, SCORES = SCORES_SHAPE_1, EDGES = EDGES_SHAPE_0, PLACED = OUT_5_SHAPE_1;
constexpr int64_t GROUPS = OUT_6_SHAPE_0, SUMMED = OUT_6_SHAPE_1;

struct Limits {
    bool has_short_sums = false, has_short_counts = false, has_fallback = true;
    int64_t of_lane = LARGEST, of_block = LARGEST, of_scores = LARGEST, room = ROWS;
};

template <typename Sum>
static void add_images(const uint8_t* images, int64_t* out) {
    Sum sums[PIXELS] = {};
    for (int64_t image = 0; image < IMAGES; ++image)
        for (int64_t i = 0; i < PIXELS; ++i) sums[i] = Sum(sums[i] + images[image * PIXELS + i]);
    std::copy(sums, sums + PIXELS, out);
}

template <typename Count>
static void count(const float* x, int64_t* out) {
    Count counts[BINS] = {};
    for (int64_t i = 0; i < ROWS * COLS; ++i) {
        const float bin = std::floor(x[i] * PER_ONE), half = BINS / 2;
        ++counts[int64_t(std::fmin(std::fmax(bin, -half), half - 1) + half)];
    }
    std::copy(counts, counts + BINS, out);
}

// Takes the largest of what each part keeps: `parts` parts, whose numbers lie `stride` apart, from every `step`th place on.
template <typename Number>
static void take_largest(const Number* row, int64_t cols, int64_t parts, int64_t step, int64_t stride, int64_t kept,
                         Number* out) {
    static Number best[LARGEST * (COLS + SCORES)], part[COLS + SCORES];
    const int64_t size = cols / parts, most = std::min(kept, size);
    for (int64_t p = 0; p < parts; ++p) {
        for (int64_t i = 0; i < size; ++i) part[i] = row[p * step + i * stride];
        std::partial_sort(part, part + most, part + size, std::greater<Number>());
        std::copy(part, part + most, best + p * most);
    }
    std::partial_sort(best, best + LARGEST, best + parts * most, std::greater<Number>());
    std::copy(best, best + LARGEST, out);
}

static float mean(const float* row, const bool* valid, bool has_fallback) {
    double sum = 0, count = 0;
    for (int64_t i = 0; i < COLS; ++i) {
        sum += valid[i] ? row[i] : 0;
        count += valid[i];
    }
    if (count == 0 && has_fallback) return *std::max_element(row, row + COLS);
    return float(sum / std::fmax(count, 1));
}

static void place(const float* row, const float* edges, int64_t* out) {
    for (int64_t i = 0; i < PLACED; ++i) {
        out[i] = 0;
        for (int64_t e = 0; e < EDGES; ++e) out[i] += edges[e] < row[i];
    }
}

static void add_groups(const float* x, const int64_t* group, int64_t room, float* out) {
    for (int64_t g = 0; g < GROUPS; ++g) {
        double sums[SUMMED] = {};
        int64_t taken = 0;
        for (int64_t row = 0; row < ROWS; ++row) {
            if (group[row] != g || taken++ >= room) continue;
            for (int64_t i = 0; i < SUMMED; ++i) sums[i] += x[row * COLS + i];
        }
        std::copy(sums, sums + SUMMED, out + g * SUMMED);
    }
}

static void work(const uint8_t* images, const float* x, const int32_t* scores, const bool* valid, const float* edges,
                 const int64_t* group, int64_t* out_0, int64_t* out_1, float* out_2, int32_t* out_3, float* out_4,
                 int64_t* out_5, float* out_6, Limits limits) {
    limits.has_short_sums ? add_images<uint16_t>(images, out_0) : add_images<uint32_t>(images, out_0);
    limits.has_short_counts ? count<uint16_t>(x, out_1) : count<uint32_t>(x, out_1);
    for (int64_t row = 0; row < ROWS; ++row) {
        const float* own = x + row * COLS;
        if (limits.of_lane < LARGEST)
            take_largest(own, COLS, LANES, 1, LANES, limits.of_lane, out_2 + row * LARGEST);
        else
            take_largest(own, COLS, COLS / BLOCK, BLOCK, 1, limits.of_block, out_2 + row * LARGEST);
        out_4[row] = mean(own, valid + row * COLS, limits.has_fallback);
        place(own, edges, out_5 + row * PLACED);
    }
    for (int64_t row = 0; row < SCORED; ++row)
        take_largest(scores + row * SCORES, SCORES, SCORES / BLOCK, BLOCK, 1, limits.of_scores, out_3 + row * LARGEST);
    add_groups(x, group, limits.room, out_6);
}
