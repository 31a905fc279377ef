// Matrix product by packed panels: b is laid out once in panels of 32 columns, and tiles of 8 rows x 32 columns are
// summed in registers over DEPTH steps at a time, for which the panel's part stays in the first-level cache.
#include "problem.h"

#include <algorithm>
#include <cstring>

namespace {

constexpr int64_t M = A_SHAPE_0;
constexpr int64_t K = A_SHAPE_1;
constexpr int64_t N = B_SHAPE_1;

constexpr int64_t DEPTH = 256;     // tune: DEPTH = 128 | 256 | 512 | 1024
constexpr int64_t ROW_BLOCK = 64;  // tune: ROW_BLOCK = 32 | 64 | 128
constexpr int ROWS = 8;
constexpr int LANES = 16;
constexpr int VECTORS = 2;
constexpr int64_t COLS = LANES * VECTORS;
constexpr int64_t PANELS = (N + COLS - 1) / COLS;
constexpr int64_t ROW_BLOCKS = (M + ROW_BLOCK - 1) / ROW_BLOCK;

typedef float Vector __attribute__((vector_size(4 * LANES)));

void pack(const float* b, float* panel, int64_t first_col) {
  const int64_t cols = std::min(COLS, N - first_col);
  for (int64_t k = 0; k < K; ++k) {
    for (int64_t j = 0; j < COLS; ++j) panel[k * COLS + j] = j < cols ? b[k * N + first_col + j] : 0.0f;
  }
}

void store_row(float* to, const Vector* sum, int64_t cols, bool adds) {
  alignas(64) float values[COLS];
  std::memcpy(values, sum, sizeof(values));
  for (int64_t j = 0; j < cols; ++j) to[j] = adds ? to[j] + values[j] : values[j];
}

// Sums `depth` steps from `k` on for 8 rows and one panel. Rows past the last repeat it and are not stored.
void multiply_tile(const float* a, const float* panel, float* out, int64_t row, int64_t col, int64_t k, int64_t depth) {
  const float* rows[ROWS];
  for (int i = 0; i < ROWS; ++i) rows[i] = a + std::min(row + i, M - 1) * K + k;
  const Vector* b = reinterpret_cast<const Vector*>(panel + k * COLS);

  Vector sum[ROWS][VECTORS] = {};
  for (int64_t d = 0; d < depth; ++d) {
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < VECTORS; ++v) sum[i][v] += rows[i][d] * b[d * VECTORS + v];
    }
  }
  const int64_t cols = std::min(COLS, N - col);
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i) {
    if (row + i < M) store_row(out + (row + i) * N + col, sum[i], cols, k > 0);
  }
}

}  // namespace

extern "C" size_t workspace_bytes() { return PANELS * K * COLS * sizeof(float); }

extern "C" void run(const float* a, const float* b, float* out, void* workspace) {
  float* panels = static_cast<float*>(workspace);
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t panel = 0; panel < PANELS; ++panel) pack(b, panels + panel * K * COLS, panel * COLS);

#pragma omp for collapse(2) schedule(static)
    for (int64_t block = 0; block < ROW_BLOCKS; ++block) {
      for (int64_t panel = 0; panel < PANELS; ++panel) {
        const int64_t end = std::min((block + 1) * ROW_BLOCK, M);
        for (int64_t k = 0; k < K; k += DEPTH) {
          for (int64_t row = block * ROW_BLOCK; row < end; row += ROWS) {
            multiply_tile(a, panels + panel * K * COLS, out, row, panel * COLS, k, std::min(DEPTH, K - k));
          }
        }
      }
    }
  }
}
