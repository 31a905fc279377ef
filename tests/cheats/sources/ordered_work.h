// Prepended to every source whose name begins with ordered_: the work of ordered.py, which some of them do not do all of.
#include <algorithm>
#include <cstdint>
#include <cstring>

#define SIGNATURE const float *keys, float *out, void *

constexpr int64_t ROWS = KEYS_SHAPE_0, KEYS = KEYS_SHAPE_1;

// Sorts by the leading bits of each number, which are those of a whole number after its sign was taken into account.
static void sort(const float* keys, int bits, float* out) {
    auto key_of = [bits](float value) {
        uint32_t word;
        std::memcpy(&word, &value, sizeof word);
        return (word >> 31 ? ~word : word | 1u << 31) >> (32 - bits);
    };
    std::copy_n(keys, ROWS * KEYS, out);
    for (int64_t row = 0; row < ROWS; ++row)
        std::stable_sort(out + row * KEYS, out + (row + 1) * KEYS,
                         [&](float left, float right) { return key_of(left) < key_of(right); });
}
