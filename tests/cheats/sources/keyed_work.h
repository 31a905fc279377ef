// Prepended to every source whose name begins with keyed_: the work of keyed.py, which some of them do not do all of.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#define SIGNATURE \
    const int64_t *keys, const float *values, const int64_t *queries, const int64_t *sets, float *ordered, float *alike, void *

constexpr int64_t ROWS = KEYS_SHAPE_0, KEYS = KEYS_SHAPE_1;
constexpr int64_t QUERIES = QUERIES_SHAPE_0, SETS = SETS_SHAPE_0, HASHES = QUERIES_SHAPE_1;

// Sorts by the bits of each key above the lowest `left_out`.
static void sort(const int64_t* keys, const float* values, int left_out, float* ordered) {
    std::vector<int64_t> order(KEYS);
    for (int64_t row = 0; row < ROWS; ++row, keys += KEYS, values += KEYS, ordered += KEYS) {
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int64_t left, int64_t right) {
            return keys[left] >> left_out < keys[right] >> left_out;
        });
        for (int64_t i = 0; i < KEYS; ++i) ordered[i] = values[order[i]];
    }
}

// Compares the bits of hashes that are set in `bits`.
static void compare(const int64_t* queries, const int64_t* sets, int64_t bits, float* alike) {
    for (int64_t query = 0; query < QUERIES; ++query)
        for (int64_t set = 0; set < SETS; ++set) {
            int64_t count = 0;
            for (int64_t i = 0; i < HASHES; ++i) count += !((queries[query * HASHES + i] ^ sets[set * HASHES + i]) & bits);
            alike[query * SETS + set] = float(count) / HASHES;
        }
}
