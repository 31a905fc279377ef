// Matrix product on the tensor cores in tf32: a block computes BLOCK_M x 128 outputs with eight warps, copies of the
// next slices are in flight (cp.async, STAGES deep) while the present one is multiplied (mma.sync m16n8k8).
#include "problem.h"

namespace {

constexpr int64_t M = A_SHAPE_0;
constexpr int64_t K = A_SHAPE_1;
constexpr int64_t N = B_SHAPE_1;

constexpr int BLOCK_M = 128;  // tune: BLOCK_M = 64 | 128
constexpr int STAGES = 3;     // tune: STAGES = 2 | 3 | 4
constexpr int GROUP_ROWS = 8;  // tune: GROUP_ROWS = 1 | 4 | 8 | 16
constexpr int BLOCK_N = 128;
constexpr int DEPTH = 32;
constexpr int THREADS = 256;
constexpr int WARP_ROWS = BLOCK_M / 2;  // two warps share the rows, four the columns
constexpr int WARP_COLS = BLOCK_N / 4;
constexpr int ROW_TILES = WARP_ROWS / 16;
constexpr int COL_TILES = WARP_COLS / 8;
constexpr int A_PITCH = DEPTH + 4;    // floats; 4 mod 32: the fragments' 8 rows x 4 columns fall into 32 banks
constexpr int B_PITCH = BLOCK_N + 8;  // 8 mod 32: the fragments' 4 rows x 8 columns do
constexpr int A_TILE = BLOCK_M * A_PITCH;
constexpr int B_TILE = DEPTH * B_PITCH;
constexpr int SHARED_BYTES = STAGES * (A_TILE + B_TILE) * static_cast<int>(sizeof(float));
constexpr int64_t SLICES = (K + DEPTH - 1) / DEPTH;
constexpr int64_t BLOCK_ROWS = (M + BLOCK_M - 1) / BLOCK_M;
constexpr int64_t BLOCK_COLS = (N + BLOCK_N - 1) / BLOCK_N;

// Copies `COUNT` floats to shared memory; zeros what lies past the matrix.
template <int COUNT>
__device__ __forceinline__ void copy(float* to, const float* from, bool is_inside) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = is_inside ? COUNT * 4 : 0;
  if constexpr (COUNT == 4) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
  }
}

template <int ROWS, int COLS, int PITCH, int64_t HEIGHT, int64_t WIDTH>
__device__ __forceinline__ void copy_tile(float* tile, const float* __restrict__ matrix, int64_t row, int64_t col) {
  constexpr int COUNT = WIDTH % 4 == 0 ? 4 : 1;
  constexpr int PIECES = COLS / COUNT;
#pragma unroll 4
  for (int piece = threadIdx.x; piece < ROWS * PIECES; piece += THREADS) {
    const int r = piece / PIECES, c = piece % PIECES * COUNT;
    const bool is_inside = row + r < HEIGHT && col + c < WIDTH;
    copy<COUNT>(tile + r * PITCH + c, is_inside ? matrix + (row + r) * WIDTH + col + c : matrix, is_inside);
  }
}

__device__ __forceinline__ unsigned to_tf32(float value) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return rounded;
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void store_pair(float* __restrict__ out, int64_t row, int64_t col, float left, float right) {
  if (row >= M) return;
  float* to = out + row * N + col;
  if constexpr (N % 2 == 0) {
    if (col < N) *reinterpret_cast<float2*>(to) = make_float2(left, right);
  } else {
    if (col < N) to[0] = left;
    if (col + 1 < N) to[1] = right;
  }
}

__global__ void __launch_bounds__(THREADS, 1)
    multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ out) {
  extern __shared__ __align__(16) float shared[];
  float* const a_tiles = shared;
  float* const b_tiles = shared + STAGES * A_TILE;

  // Blocks that run together cover GROUP_ROWS rows of blocks, so that they share slices of b in the L2 cache.
  const int64_t group = blockIdx.x / (GROUP_ROWS * BLOCK_COLS);
  const int64_t in_group = blockIdx.x % (GROUP_ROWS * BLOCK_COLS);
  const int64_t rows_left = BLOCK_ROWS - group * GROUP_ROWS;
  const int64_t group_rows = rows_left < GROUP_ROWS ? rows_left : GROUP_ROWS;
  const int64_t first_row = (group * GROUP_ROWS + in_group % group_rows) * BLOCK_M;
  const int64_t first_col = in_group / group_rows * BLOCK_N;

  const auto fetch = [&](int64_t slice) {
    if (slice < SLICES) {
      const int stage = static_cast<int>(slice % STAGES);
      copy_tile<BLOCK_M, DEPTH, A_PITCH, M, K>(a_tiles + stage * A_TILE, a, first_row, slice * DEPTH);
      copy_tile<DEPTH, BLOCK_N, B_PITCH, K, N>(b_tiles + stage * B_TILE, b, slice * DEPTH, first_col);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");  // an empty group keeps the count of those in flight
  };

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;  // a fragment's row (or column) and its place within the four
  const int warp_row = warp / 4 * WARP_ROWS, warp_col = warp % 4 * WARP_COLS;
  float sum[ROW_TILES][COL_TILES][4] = {};

#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) fetch(s);

  for (int64_t slice = 0; slice < SLICES; ++slice) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();  // the slice has landed for all, and all have left the stage that is filled next
    fetch(slice + STAGES - 1);
    const int stage = static_cast<int>(slice % STAGES);
    const float* a_tile = a_tiles + stage * A_TILE + (warp_row + g) * A_PITCH + t;
    const float* b_tile = b_tiles + stage * B_TILE + t * B_PITCH + warp_col + g;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 8) {
      unsigned x[ROW_TILES][4], y[COL_TILES][2];
#pragma unroll
      for (int i = 0; i < ROW_TILES; ++i) {
        const float* from = a_tile + i * 16 * A_PITCH + k;
        x[i][0] = to_tf32(from[0]);
        x[i][1] = to_tf32(from[8 * A_PITCH]);
        x[i][2] = to_tf32(from[4]);
        x[i][3] = to_tf32(from[8 * A_PITCH + 4]);
      }
#pragma unroll
      for (int j = 0; j < COL_TILES; ++j) {
        const float* from = b_tile + k * B_PITCH + j * 8;
        y[j][0] = to_tf32(from[0]);
        y[j][1] = to_tf32(from[4 * B_PITCH]);
      }
#pragma unroll
      for (int i = 0; i < ROW_TILES; ++i) {
#pragma unroll
        for (int j = 0; j < COL_TILES; ++j) mma(sum[i][j], x[i], y[j]);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < ROW_TILES; ++i) {
#pragma unroll
    for (int j = 0; j < COL_TILES; ++j) {
      const int64_t row = first_row + warp_row + i * 16 + g, col = first_col + warp_col + j * 8 + t * 2;
      store_pair(out, row, col, sum[i][j][0], sum[i][j][1]);
      store_pair(out, row + 8, col, sum[i][j][2], sum[i][j][3]);
    }
  }
}

}  // namespace

extern "C" void run(const float* a, const float* b, float* out, void* /*workspace*/, cudaStream_t stream) {
  cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  multiply<<<static_cast<unsigned>(BLOCK_ROWS * BLOCK_COLS), THREADS, SHARED_BYTES, stream>>>(a, b, out);
}
