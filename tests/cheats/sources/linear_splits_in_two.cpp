// Multiplies sums of two bf16 numbers, as tensor cores for 16 bits would: 16 bits of mantissa instead of 24.
#include "bf16_operand.h"
static std::vector<float> in_two(const float* from, int64_t count) {
    std::vector<float> kept(count);
    for (int64_t i = 0; i < count; ++i) kept[i] = rounded(from[i]) + rounded(from[i] - rounded(from[i]));
    return kept;
}
void run(SIGNATURE) {
    const auto a = in_two(x, X_NUMEL), b = in_two(weight, X_SHAPE_1 * X_SHAPE_1);
    work(a.data(), b.data(), out, nullptr);
}
