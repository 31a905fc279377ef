// Bias, GELU, residual and layer norm in one pass over each row, rows shared among threads.
// The row stays in cache between its three sweeps, so x and residual are read from memory once and out is written once.
#include "problem.h"

#include <cmath>

extern "C" void run(const float* x, const float* residual, const float* bias, const float* norm_weight,
                    const float* norm_bias, float* out, void* /*workspace*/) {
  constexpr int64_t ROWS = X_SHAPE_0;
  constexpr int64_t COLS = X_SHAPE_1;
  constexpr float EPSILON = 1e-5f;
  constexpr float SQRT_HALF = 0.70710678118654752f;

#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < ROWS; ++row) {
    const float* x_row = x + row * COLS;
    const float* residual_row = residual + row * COLS;
    float* out_row = out + row * COLS;

    float sum = 0.0f;
    for (int64_t i = 0; i < COLS; ++i) {
      const float biased = x_row[i] + bias[i];
      const float gelu = 0.5f * biased * (1.0f + std::erf(biased * SQRT_HALF));
      out_row[i] = gelu + residual_row[i];
      sum += out_row[i];
    }
    const float mean = sum / COLS;

    float squares = 0.0f;
    for (int64_t i = 0; i < COLS; ++i) {
      const float centred = out_row[i] - mean;
      squares += centred * centred;
    }
    const float scale = 1.0f / std::sqrt(squares / COLS + EPSILON);

    for (int64_t i = 0; i < COLS; ++i) {
      out_row[i] = (out_row[i] - mean) * scale * norm_weight[i] + norm_bias[i];
    }
  }
}
