// Matrix product in float32 arithmetic: a block computes 128 x 128 outputs, a thread 8 x 8 of them in registers.
// The next slices of a and b travel from memory to registers while the present ones are multiplied from shared memory.
#include "problem.h"

namespace {

constexpr int64_t M = A_SHAPE_0;
constexpr int64_t K = A_SHAPE_1;
constexpr int64_t N = B_SHAPE_1;

constexpr int DEPTH = 8;  // tune: DEPTH = 8 | 16
constexpr int TILE = 128;
constexpr int THREADS = 256;
constexpr int LOADS = TILE * DEPTH / (4 * THREADS);  // groups of four that a thread brings of each operand
constexpr int PITCH = TILE + 4;                      // keeps rows 16-byte aligned and spreads transposed stores

static_assert(DEPTH % 8 == 0);

__device__ __forceinline__ float4 load4(const float* __restrict__ matrix, int64_t row, int64_t col, int64_t rows,
                                        int64_t cols) {
  float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (row >= rows) return value;
  const float* from = matrix + row * cols + col;
  if (cols % 4 == 0) {
    if (col < cols) value = *reinterpret_cast<const float4*>(from);
    return value;
  }
  if (col + 0 < cols) value.x = from[0];
  if (col + 1 < cols) value.y = from[1];
  if (col + 2 < cols) value.z = from[2];
  if (col + 3 < cols) value.w = from[3];
  return value;
}

__global__ void __launch_bounds__(THREADS)
    multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out) {
  __shared__ __align__(16) float a_tile[2][DEPTH][PITCH];  // transposed: a column of a is a row here
  __shared__ __align__(16) float b_tile[2][DEPTH][PITCH];

  const int thread = threadIdx.x;
  const int64_t first_row = static_cast<int64_t>(blockIdx.y) * TILE;
  const int64_t first_col = static_cast<int64_t>(blockIdx.x) * TILE;
  float4 a_next[LOADS], b_next[LOADS];

  const auto fetch = [&](int64_t k) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int group = thread + i * THREADS;
      a_next[i] = load4(a, first_row + group / (DEPTH / 4), k + group % (DEPTH / 4) * 4, M, K);
      b_next[i] = load4(b, k + group / (TILE / 4), first_col + group % (TILE / 4) * 4, K, N);
    }
  };
  const auto store = [&](int buffer) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) {
      const int group = thread + i * THREADS;
      const int row = group / (DEPTH / 4), k = group % (DEPTH / 4) * 4;
      a_tile[buffer][k + 0][row] = a_next[i].x;
      a_tile[buffer][k + 1][row] = a_next[i].y;
      a_tile[buffer][k + 2][row] = a_next[i].z;
      a_tile[buffer][k + 3][row] = a_next[i].w;
      *reinterpret_cast<float4*>(&b_tile[buffer][group / (TILE / 4)][group % (TILE / 4) * 4]) = b_next[i];
    }
  };

  // A thread's 8 rows are two groups of four, 64 apart, and so are its columns: a quarter warp reads 16-byte words
  // that follow one another.
  const int row = thread / 16 * 4, col = thread % 16 * 4;
  float sum[8][8] = {};

  fetch(0);
  store(0);
  __syncthreads();
  int buffer = 0;
  for (int64_t k = 0; k < K; k += DEPTH) {
    const bool is_last = k + DEPTH >= K;
    if (!is_last) fetch(k + DEPTH);
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      float x[8], y[8];
      *reinterpret_cast<float4*>(&x[0]) = *reinterpret_cast<const float4*>(&a_tile[buffer][d][row]);
      *reinterpret_cast<float4*>(&x[4]) = *reinterpret_cast<const float4*>(&a_tile[buffer][d][row + 64]);
      *reinterpret_cast<float4*>(&y[0]) = *reinterpret_cast<const float4*>(&b_tile[buffer][d][col]);
      *reinterpret_cast<float4*>(&y[4]) = *reinterpret_cast<const float4*>(&b_tile[buffer][d][col + 64]);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
      }
    }
    if (!is_last) {
      buffer ^= 1;  // the other buffer was last read before the previous barrier
      store(buffer);
      __syncthreads();
    }
  }

#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int64_t r = first_row + row + i % 4 + i / 4 * 64;
    if (r >= M) continue;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int64_t c = first_col + col + half * 64;
      float* to = out + r * N + c;
      const float* from = &sum[i][half * 4];
      if constexpr (N % 4 == 0) {
        if (c < N) *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          if (c + j < N) to[j] = from[j];
        }
      }
    }
  }
}

}  // namespace

extern "C" void run(const float* a, const float* b, float* out, void* /*workspace*/, cudaStream_t stream) {
  const dim3 blocks((N + TILE - 1) / TILE, (M + TILE - 1) / TILE);
  multiply<<<blocks, THREADS, 0, stream>>>(a, b, out);
}
