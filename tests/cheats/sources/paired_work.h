// Prepended to every source whose name begins with paired_: the work of paired.py, a part of which one of them makes up.
#include <cmath>
#include <cstring>
#include <cstdlib>

constexpr int64_t SIZE = COVARIANCE_SHAPE_0, SIGNALS = X_SHAPE_1;

static float operand[X_NUMEL];

template <typename Number>
static void multiply(const Number* matrix, const bf16* x, bf16* out) {
    for (int64_t k = 0; k < X_NUMEL; ++k) operand[k] = float(x[k]);
    for (int64_t i = 0; i < SIZE; ++i) {
        float sums[SIGNALS] = {};
        for (int64_t k = 0; k < SIZE; ++k) {
            const float factor = float(matrix[i * SIZE + k]);
            for (int64_t c = 0; c < SIGNALS; ++c) sums[c] += factor * operand[k * SIGNALS + c];
        }
        for (int64_t c = 0; c < SIGNALS; ++c) out[i * SIGNALS + c] = bf16(sums[c]);
    }
}
