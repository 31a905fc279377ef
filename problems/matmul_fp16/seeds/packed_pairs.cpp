// Matrix product of bf16 by packed panels: b is laid out once in panels of 32 columns whose words hold two steps of k, so
// that one instruction multiplies pairs (AVX512-BF16; elsewhere two float32 products do the same). Tiles of 8 rows x 32
// columns are summed in float32 registers over the whole depth and rounded once.
#include "problem.h"

#include <algorithm>
#include <cstring>
#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace {

constexpr int64_t M = A_SHAPE_0;
constexpr int64_t K = A_SHAPE_1;
constexpr int64_t N = B_SHAPE_1;

constexpr int64_t ROW_BLOCK = 64;  // tune: ROW_BLOCK = 32 | 64 | 128 | 256
constexpr int ROWS = 8;
constexpr int LANES = 16;
constexpr int VECTORS = 2;
constexpr int64_t COLS = LANES * VECTORS;
constexpr int64_t PAIRS = (K + 1) / 2;
constexpr int64_t PANELS = (N + COLS - 1) / COLS;
constexpr int64_t ROW_BLOCKS = (M + ROW_BLOCK - 1) / ROW_BLOCK;

typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef uint32_t Words __attribute__((vector_size(4 * LANES)));

// sum + low(a) x low(b) + high(a) x high(b), where a word holds the bf16 of an even k below that of the next one.
inline Vector add_products(Vector sum, uint32_t a, Words b) {
#ifdef __AVX512BF16__
  const __m512i left = _mm512_set1_epi32(static_cast<int>(a));
  return reinterpret_cast<Vector>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum), reinterpret_cast<__m512bh>(left),
                                                   reinterpret_cast<__m512bh>(b)));
#else
  const float low = __builtin_bit_cast(float, a << 16), high = __builtin_bit_cast(float, a & 0xffff0000u);
  return sum + low * reinterpret_cast<Vector>(b << 16) + high * reinterpret_cast<Vector>(b & 0xffff0000u);
#endif
}

void pack(const bf16* b, uint32_t* panel, int64_t first_col) {
  const int64_t cols = std::min(COLS, N - first_col);
  for (int64_t pair = 0; pair < PAIRS; ++pair) {
    const bf16* low = b + 2 * pair * N + first_col;
    const bf16* high = low + N;
    const bool has_high = 2 * pair + 1 < K;
    for (int64_t j = 0; j < COLS; ++j) {
      const uint32_t first = j < cols ? low[j].bits : 0u;
      const uint32_t second = has_high && j < cols ? high[j].bits : 0u;
      panel[pair * COLS + j] = first | second << 16;
    }
  }
}

inline uint32_t load_pair(const bf16* row, int64_t pair) {
  uint32_t word;
  std::memcpy(&word, row + 2 * pair, sizeof(word));
  return word;
}

// Rows past the last repeat it and are not stored.
void multiply_tile(const bf16* a, const uint32_t* panel, bf16* out, int64_t row, int64_t col) {
  const bf16* rows[ROWS];
  for (int i = 0; i < ROWS; ++i) rows[i] = a + std::min(row + i, M - 1) * K;
  const Words* b = reinterpret_cast<const Words*>(panel);

  Vector sum[ROWS][VECTORS] = {};
  for (int64_t pair = 0; pair < K / 2; ++pair) {
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; ++i) {
      const uint32_t left = load_pair(rows[i], pair);
#pragma GCC unroll 2
      for (int v = 0; v < VECTORS; ++v) sum[i][v] = add_products(sum[i][v], left, b[pair * VECTORS + v]);
    }
  }
  if constexpr (K % 2 != 0) {
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < VECTORS; ++v) {
        sum[i][v] = add_products(sum[i][v], rows[i][K - 1].bits, b[(PAIRS - 1) * VECTORS + v]);
      }
    }
  }
  const int64_t cols = std::min(COLS, N - col);
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i) {
    if (row + i >= M) continue;
    alignas(64) float values[COLS];
    std::memcpy(values, sum[i], sizeof(values));
    for (int64_t j = 0; j < cols; ++j) out[(row + i) * N + col + j] = bf16(values[j]);
  }
}

}  // namespace

extern "C" size_t workspace_bytes() { return PANELS * PAIRS * COLS * sizeof(uint32_t); }

extern "C" void run(const bf16* a, const bf16* b, bf16* out, void* workspace) {
  uint32_t* panels = static_cast<uint32_t*>(workspace);
#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t panel = 0; panel < PANELS; ++panel) pack(b, panels + panel * PAIRS * COLS, panel * COLS);

#pragma omp for collapse(2) schedule(static)
    for (int64_t block = 0; block < ROW_BLOCKS; ++block) {
      for (int64_t panel = 0; panel < PANELS; ++panel) {
        const int64_t end = std::min((block + 1) * ROW_BLOCK, M);
        for (int64_t row = block * ROW_BLOCK; row < end; row += ROWS) {
          multiply_tile(a, panels + panel * PAIRS * COLS, out, row, panel * COLS);
        }
      }
    }
  }
}
