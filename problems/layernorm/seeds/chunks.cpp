// Layer norm of few, long rows: threads share the chunks of all rows. The first sweep takes each chunk's mean and squared
// deviations while the chunk is in the first-level cache, the second combines a row's chunks and writes it.
#include "problem.h"

#include <algorithm>
#include <cmath>

namespace {

constexpr int64_t ROWS = X_SHAPE_0;
constexpr int64_t COLS = X_NUMEL / X_SHAPE_0;
constexpr float EPSILON = 1e-5f;
constexpr int64_t CHUNK = 4096;  // tune: CHUNK = 2048 | 4096 | 8192 | 16384
constexpr int64_t CHUNKS = (COLS + CHUNK - 1) / CHUNK;

struct Moments {
  double mean;
  double squares;  // sum of squared deviations from the mean
};

Moments measure(const float* x, int64_t count) {
  float sum = 0.0f;
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(count);
  float rest = 0.0f, squares = 0.0f;  // `rest` takes back what rounding the mean left
  for (int64_t i = 0; i < count; ++i) {
    const float distance = x[i] - mean;
    rest += distance;
    squares += distance * distance;
  }
  const double correction = static_cast<double>(rest) / static_cast<double>(count);
  return {mean + correction, squares - rest * correction};
}

Moments combined(const Moments* chunks) {
  double count = 0.0, mean = 0.0, squares = 0.0;
  for (int64_t i = 0; i < CHUNKS; ++i) {
    const double n = static_cast<double>(std::min(CHUNK, COLS - i * CHUNK));
    const double distance = chunks[i].mean - mean;
    squares += chunks[i].squares + distance * distance * count * n / (count + n);
    mean += distance * n / (count + n);
    count += n;
  }
  return {mean, squares};
}

}  // namespace

extern "C" size_t workspace_bytes() { return ROWS * CHUNKS * sizeof(Moments); }

extern "C" void run(const float* x, const float* norm_weight, const float* norm_bias, float* out, void* workspace) {
  Moments* moments = static_cast<Moments*>(workspace);
#pragma omp parallel
  {
#pragma omp for collapse(2) schedule(static)
    for (int64_t row = 0; row < ROWS; ++row) {
      for (int64_t chunk = 0; chunk < CHUNKS; ++chunk) {
        const int64_t first = chunk * CHUNK;
        moments[row * CHUNKS + chunk] = measure(x + row * COLS + first, std::min(CHUNK, COLS - first));
      }
    }

#pragma omp for collapse(2) schedule(static)
    for (int64_t row = 0; row < ROWS; ++row) {
      for (int64_t chunk = 0; chunk < CHUNKS; ++chunk) {
        const Moments whole = combined(moments + row * CHUNKS);
        const float mean = static_cast<float>(whole.mean);
        const float scale = static_cast<float>(1.0 / std::sqrt(whole.squares / static_cast<double>(COLS) + EPSILON));
        const int64_t end = std::min((chunk + 1) * CHUNK, COLS);
        for (int64_t i = chunk * CHUNK; i < end; ++i) {
          out[row * COLS + i] = (x[row * COLS + i] - mean) * scale * norm_weight[i] + norm_bias[i];
        }
      }
    }
  }
}
