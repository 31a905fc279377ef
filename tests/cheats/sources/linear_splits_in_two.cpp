// Multiplies sums of two bf16 numbers, as tensor cores for 16 bits would: 16 bits of mantissa instead of 24.
#include <cstring>
#include <vector>
static float high_part(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    bits = (bits + 0x8000u) & 0xFFFF0000u;
    memcpy(&v, &bits, 4);
    return v;
}
static std::vector<float> in_two(const float* from, int64_t count) {
    std::vector<float> kept(count);
    for (int64_t i = 0; i < count; ++i) kept[i] = high_part(from[i]) + high_part(from[i] - high_part(from[i]));
    return kept;
}
void run(SIGNATURE) {
    const auto a = in_two(x, X_NUMEL), b = in_two(weight, X_SHAPE_1 * X_SHAPE_1);
    work(a.data(), b.data(), out, nullptr);
}
