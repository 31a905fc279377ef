// One row at a time over all threads.
#include <math.h>

constexpr int STEPS = 16;

void run(const float* x, float* out, void*) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < X_SHAPE_0; ++row) {
    const float* from = x + row * X_SHAPE_1;
    float* to = out + row * X_SHAPE_1;
#pragma omp simd
    for (int64_t j = 0; j < X_SHAPE_1; ++j) {
      float y = from[j];
      for (int step = 0; step < STEPS; ++step) y += 0.1f * expf(-y * y);
      to[j] = y;
    }
  }
}
