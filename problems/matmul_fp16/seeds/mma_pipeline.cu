// Matrix product on the tensor cores: fp16 operands, float32 sums. A block computes BLOCK_M x 128 outputs with
// warps of 64 x 32; copies of the next slices are in flight (cp.async, STAGES deep) while the present one is multiplied
// (ldmatrix, mma.sync m16n8k16).
#include "problem.h"

namespace {

constexpr int64_t M = A_SHAPE_0;
constexpr int64_t K = A_SHAPE_1;
constexpr int64_t N = B_SHAPE_1;

constexpr int BLOCK_M = 128;   // tune: BLOCK_M = 64 | 128
constexpr int DEPTH = 32;      // tune: DEPTH = 32 | 64
constexpr int STAGES = 4;      // tune: STAGES = 2 | 3 | 4
constexpr int GROUP_ROWS = 8;  // tune: GROUP_ROWS = 1 | 4 | 8 | 16
constexpr int BLOCK_N = 128;
constexpr int WARPS_DOWN = BLOCK_M / 64;
constexpr int WARPS_ACROSS = 4;
constexpr int THREADS = 32 * WARPS_DOWN * WARPS_ACROSS;
constexpr int WARP_ROWS = BLOCK_M / WARPS_DOWN;
constexpr int WARP_COLS = BLOCK_N / WARPS_ACROSS;
constexpr int ROW_TILES = WARP_ROWS / 16;
constexpr int COL_TILES = WARP_COLS / 8;
constexpr int A_PITCH = DEPTH + 8;  // elements; rows of a fragment lie 4 or 20 words apart mod 32: no bank conflicts
constexpr int B_PITCH = BLOCK_N + 8;
constexpr int A_TILE = BLOCK_M * A_PITCH;
constexpr int B_TILE = DEPTH * B_PITCH;
constexpr int SHARED_BYTES = STAGES * (A_TILE + B_TILE) * static_cast<int>(sizeof(fp16));
constexpr int64_t SLICES = (K + DEPTH - 1) / DEPTH;
constexpr int64_t BLOCK_ROWS = (M + BLOCK_M - 1) / BLOCK_M;
constexpr int64_t BLOCK_COLS = (N + BLOCK_N - 1) / BLOCK_N;

static_assert(COL_TILES % 2 == 0 && SHARED_BYTES <= 227 * 1024);

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Brings a tile to shared memory, zeros where it leaves the matrix: by 16-byte copies that nobody waits for here, or
// element by element where the matrix's rows are not 16-byte aligned.
template <int ROWS, int COLS, int PITCH, int64_t HEIGHT, int64_t WIDTH>
__device__ __forceinline__ void copy_tile(fp16* tile, const fp16* __restrict__ matrix, int64_t row, int64_t col) {
  if constexpr (WIDTH % 8 == 0) {
    constexpr int PIECES = COLS / 8;
#pragma unroll 4
    for (int piece = threadIdx.x; piece < ROWS * PIECES; piece += THREADS) {
      const int r = piece / PIECES, c = piece % PIECES * 8;
      const bool is_inside = row + r < HEIGHT && col + c < WIDTH;
      const fp16* from = is_inside ? matrix + (row + r) * WIDTH + col + c : matrix;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(tile + r * PITCH + c)),
                   "l"(from), "r"(is_inside ? 16 : 0)
                   : "memory");
    }
  } else {
    for (int element = threadIdx.x; element < ROWS * COLS; element += THREADS) {
      const int r = element / COLS, c = element % COLS;
      const bool is_inside = row + r < HEIGHT && col + c < WIDTH;
      tile[r * PITCH + c] = is_inside ? matrix[(row + r) * WIDTH + col + c] : fp16(0.0f);
    }
  }
}

__device__ __forceinline__ void load_matrices(unsigned (&to)[4], const fp16* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(from))
               : "memory");
}

__device__ __forceinline__ void load_transposed(unsigned (&to)[4], const fp16* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(from))
               : "memory");
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b_low, unsigned b_high) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high));
}

__device__ __forceinline__ void store_pair(fp16* __restrict__ out, int64_t row, int64_t col, float left, float right) {
  if (row >= M) return;
  fp16* to = out + row * N + col;
  if constexpr (N % 2 == 0) {
    if (col < N) *reinterpret_cast<__half2*>(to) = __floats2half2_rn(left, right);
  } else {
    if (col < N) to[0] = __float2half_rn(left);
    if (col + 1 < N) to[1] = __float2half_rn(right);
  }
}

__global__ void __launch_bounds__(THREADS, 1)
    multiply(const fp16* __restrict__ a, const fp16* __restrict__ b, fp16* __restrict__ out) {
  extern __shared__ __align__(16) unsigned char shared[];
  fp16* const a_tiles = reinterpret_cast<fp16*>(shared);
  fp16* const b_tiles = a_tiles + STAGES * A_TILE;

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
  const int warp_row = warp / WARPS_ACROSS * WARP_ROWS, warp_col = warp % WARPS_ACROSS * WARP_COLS;
  float sum[ROW_TILES][COL_TILES][4] = {};

#pragma unroll
  for (int s = 0; s < STAGES - 1; ++s) fetch(s);

  for (int64_t slice = 0; slice < SLICES; ++slice) {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
    __syncthreads();  // the slice has landed for all, and all have left the stage that is filled next
    fetch(slice + STAGES - 1);
    const int stage = static_cast<int>(slice % STAGES);
    // Lanes 0-15 name the 16 rows of a tile's left half, lanes 16-31 those of its right half.
    const fp16* a_tile = a_tiles + stage * A_TILE + (warp_row + lane % 16) * A_PITCH + lane / 16 * 8;
    const fp16* b_tile = b_tiles + stage * B_TILE + lane % 16 * B_PITCH + warp_col + lane / 16 * 8;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
      unsigned x[ROW_TILES][4], y[COL_TILES / 2][4];
#pragma unroll
      for (int i = 0; i < ROW_TILES; ++i) load_matrices(x[i], a_tile + i * 16 * A_PITCH + k);
#pragma unroll
      for (int j = 0; j < COL_TILES / 2; ++j) load_transposed(y[j], b_tile + k * B_PITCH + j * 16);
#pragma unroll
      for (int i = 0; i < ROW_TILES; ++i) {
#pragma unroll
        for (int j = 0; j < COL_TILES; ++j) mma(sum[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < ROW_TILES; ++i) {
#pragma unroll
    for (int j = 0; j < COL_TILES; ++j) {
      const int64_t row = first_row + warp_row + i * 16 + lane / 4;
      const int64_t col = first_col + warp_col + j * 8 + lane % 4 * 2;
      store_pair(out, row, col, sum[i][j][0], sum[i][j][1]);
      store_pair(out, row + 8, col, sum[i][j][2], sum[i][j][3]);
    }
  }
}

}  // namespace

extern "C" void run(const fp16* a, const fp16* b, fp16* out, void* /*workspace*/, cudaStream_t stream) {
  cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  multiply<<<static_cast<unsigned>(BLOCK_ROWS * BLOCK_COLS), THREADS, SHARED_BYTES, stream>>>(a, b, out);
}
