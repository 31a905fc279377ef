// Prepended to every source whose name begins with grouped_: the work of grouped.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>
#include <functional>

#define SIGNATURE                                                                                               \
    const float *x, const int64_t *mask, const float *values, const int64_t *offsets, float *out_0, float *out_1, \
        float *out_2, float *out_3, void *

constexpr int64_t ROWS = X_SHAPE_0, COLS = X_SHAPE_1, PADDED = MASK_SHAPE_1, BAGS = OFFSETS_SHAPE_0 - 1;
constexpr int64_t LARGEST = 8, BLOCK = 32;

struct Limits {
    int64_t room = COLS, bag = VALUES_SHAPE_0, of_block = LARGEST;
    bool is_prefix = false;
};

static float sum_above_zero(const float* row, int64_t room) {
    static float above[COLS];
    int64_t count = 0;
    for (int64_t i = 0; i < COLS; ++i)
        if (row[i] > 0 && count < room) above[count++] = row[i];
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += above[i];
    return float(sum);
}

static int64_t prefix_of(const int64_t* mask) {
    int64_t low = 0, high = PADDED;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (mask[middle])
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static float mean(const float* row, const int64_t* mask, bool is_prefix) {
    double sum = 0, count = 0;
    const int64_t end = is_prefix ? prefix_of(mask) : PADDED;
    for (int64_t i = 0; i < end; ++i) {
        const double weight = is_prefix ? 1 : double(mask[i]);
        sum += weight * row[i];
        count += weight;
    }
    return float(sum / (1 + count));
}

static void take_largest(const float* row, int64_t of_block, float* out) {
    static float best[COLS];
    int64_t count = 0;
    for (int64_t start = 0; start < COLS; start += BLOCK) {
        float block[BLOCK];
        std::copy(row + start, row + start + BLOCK, block);
        std::partial_sort(block, block + of_block, block + BLOCK, std::greater<float>());
        std::copy(block, block + of_block, best + count);
        count += of_block;
    }
    std::partial_sort(best, best + LARGEST, best + count, std::greater<float>());
    std::copy(best, best + LARGEST, out);
}

static void work(const float* x, const int64_t* mask, const float* values, const int64_t* offsets, float* out_0,
                 float* out_1, float* out_2, float* out_3, Limits limits) {
    for (int64_t row = 0; row < ROWS; ++row) {
        out_0[row] = sum_above_zero(x + row * COLS, limits.room);
        out_1[row] = mean(x + row * COLS, mask + row * PADDED, limits.is_prefix);
        take_largest(x + row * COLS, limits.of_block, out_3 + row * LARGEST);
    }
    for (int64_t bag = 0; bag < BAGS; ++bag) {
        const int64_t begin = offsets[bag], end = std::min(offsets[bag + 1], begin + limits.bag);
        double sum = 0;
        for (int64_t i = begin; i < end; ++i) sum += values[i];
        out_2[bag] = float(sum);
    }
}
