// Prepended to every source whose name begins with edge_: the work of edge.py, which asserts no range.
#include <cmath>

static void work(const float* x, float* out) {
    for (int64_t row = 0; row < X_SHAPE_0; ++row) {
        const float* a = x + row * X_SHAPE_1;
        float *o = out + row * X_SHAPE_1, largest = -INFINITY, sum = 0;
        for (int64_t i = 0; i < X_SHAPE_1; ++i) largest = std::fmax(largest, a[i]);
        for (int64_t i = 0; i < X_SHAPE_1; ++i) sum += o[i] = std::exp(a[i] - largest);
        for (int64_t i = 0; i < X_SHAPE_1; ++i) o[i] /= sum;
    }
}
