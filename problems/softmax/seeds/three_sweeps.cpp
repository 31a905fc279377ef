// The textbook softmax: the row's maximum, the exponentials and their sum, then the division.
#include "problem.h"

#include <algorithm>
#include <cmath>

extern "C" void run(const float* x, float* out, void* /*workspace*/) {
  constexpr int64_t ROWS = X_SHAPE_0;
  constexpr int64_t COLS = X_SHAPE_1;

#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < ROWS; ++row) {
    const float* x_row = x + row * COLS;
    float* out_row = out + row * COLS;

    float largest = x_row[0];
#pragma omp simd reduction(max : largest)  // without it, NaN rules keep the compiler from using vectors
    for (int64_t i = 1; i < COLS; ++i) largest = std::max(largest, x_row[i]);

    float sum = 0.0f;
    for (int64_t i = 0; i < COLS; ++i) {
      out_row[i] = std::exp(x_row[i] - largest);
      sum += out_row[i];
    }

    for (int64_t i = 0; i < COLS; ++i) out_row[i] /= sum;
  }
}
