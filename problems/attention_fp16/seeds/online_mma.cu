// Attention without its matrix of scores in memory: a block takes 16 queries a warp and walks over the keys in tiles of
// 64, keeping the running maximum and sum of each query and rescaling the output when the maximum grows (online
// softmax). Products on the tensor cores (mma.sync m16n8k16, fp16 in, float32 sums); the next tile of keys and values is
// copied (cp.async) while the present one is used.
#include "problem.h"

namespace {

constexpr int64_t HEADS = Q_SHAPE_0 * Q_SHAPE_1;  // of all batches
constexpr int64_t QUERIES = Q_SHAPE_2;
constexpr int64_t KEYS = K_SHAPE_2;
constexpr int DEPTH = Q_SHAPE_3;

constexpr int WARPS = 8;      // tune: WARPS = 4 | 8
constexpr int TILE = 64;      // tune: TILE = 32 | 64 | 128
constexpr int THREADS = 32 * WARPS;
constexpr int BLOCK_QUERIES = 16 * WARPS;
constexpr int64_t TILES = (KEYS + TILE - 1) / TILE;
constexpr int PITCH = DEPTH + 8;  // elements; rows of a fragment lie 4 words apart mod 32: no bank conflicts
constexpr int SHARED_BYTES = 2 * 2 * TILE * PITCH * static_cast<int>(sizeof(fp16));
constexpr int SCORE_TILES = TILE / 8;
constexpr int DEPTH_STEPS = DEPTH / 16;
constexpr float LOG2_E = 1.4426950408889634f;

static_assert(DEPTH % 16 == 0 && V_SHAPE_3 == DEPTH, "heads of another form");
static_assert(SHARED_BYTES <= 227 * 1024);

constexpr double root(double square) {  // Newton's method, from above
  double guess = square < 1.0 ? 1.0 : square;
  for (int i = 0; i < 64; ++i) guess = 0.5 * (guess + square / guess);
  return guess;
}
constexpr float SCALE = static_cast<float>(LOG2_E / root(DEPTH));  // exp(s / sqrt(d)) = exp2(s x SCALE)

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// Copies TILE rows of DEPTH elements from `first` on; zeros past the last key.
__device__ __forceinline__ void copy_tile(fp16* tile, const fp16* __restrict__ rows, int64_t first) {
  constexpr int PIECES = DEPTH / 8;
#pragma unroll 4
  for (int piece = threadIdx.x; piece < TILE * PIECES; piece += THREADS) {
    const int row = piece / PIECES, col = piece % PIECES * 8;
    const bool is_inside = first + row < KEYS;
    const fp16* from = is_inside ? rows + (first + row) * DEPTH + col : rows;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(tile + row * PITCH + col)),
                 "l"(from), "r"(is_inside ? 16 : 0)
                 : "memory");
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

__device__ __forceinline__ float power_of_two(float exponent) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(exponent));
  return result;
}

__device__ __forceinline__ unsigned packed(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const unsigned&>(pair);
}

__device__ __forceinline__ float quad_max(float value) {  // over the four lanes that share a row
  value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 1));
  return fmaxf(value, __shfl_xor_sync(0xffffffffu, value, 2));
}

__device__ __forceinline__ float quad_sum(float value) {
  value += __shfl_xor_sync(0xffffffffu, value, 1);
  return value + __shfl_xor_sync(0xffffffffu, value, 2);
}

// A lane's part of 16 queries: rows g and g + 8, of every eight columns the pair from 2 t on.
struct Rows {
  unsigned query[DEPTH_STEPS][4];
  float out[DEPTH / 8][4];
  float largest[2];  // score so far, not scaled
  float sum[2];      // this lane's share of the sum of exponentials
};

__device__ __forceinline__ unsigned load_pair(const fp16* __restrict__ row, int64_t index, int col) {
  return index < QUERIES ? *reinterpret_cast<const unsigned*>(row + index * DEPTH + col) : 0u;
}

__device__ __forceinline__ void load_queries(Rows& rows, const fp16* __restrict__ q, int64_t first, int t) {
#pragma unroll
  for (int d = 0; d < DEPTH_STEPS; ++d) {
    rows.query[d][0] = load_pair(q, first, d * 16 + t * 2);
    rows.query[d][1] = load_pair(q, first + 8, d * 16 + t * 2);
    rows.query[d][2] = load_pair(q, first, d * 16 + t * 2 + 8);
    rows.query[d][3] = load_pair(q, first + 8, d * 16 + t * 2 + 8);
  }
}

__device__ __forceinline__ void score(float (&scores)[SCORE_TILES][4], const Rows& rows, const fp16* keys, int lane) {
  // Lanes 0-7 and 8-15 name keys 0-7 (both halves of the depth), lanes 16-31 keys 8-15.
  const fp16* from = keys + (lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 8;
#pragma unroll
  for (int d = 0; d < DEPTH_STEPS; ++d) {
#pragma unroll
    for (int n = 0; n < SCORE_TILES; n += 2) {
      unsigned key[4];
      load_matrices(key, from + n * 8 * PITCH + d * 16);
      mma(scores[n], rows.query[d], key[0], key[1]);
      mma(scores[n + 1], rows.query[d], key[2], key[3]);
    }
  }
}

__device__ __forceinline__ void mask_past_end(float (&scores)[SCORE_TILES][4], int64_t first, int t) {
#pragma unroll
  for (int n = 0; n < SCORE_TILES; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (first + n * 8 + t * 2 + i % 2 >= KEYS) scores[n][i] = -INFINITY;
    }
  }
}

// Turns scores into exponentials and rescales what was summed under a smaller maximum.
__device__ __forceinline__ void soften(float (&scores)[SCORE_TILES][4], Rows& rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float largest = rows.largest[half];
#pragma unroll
    for (int n = 0; n < SCORE_TILES; ++n) {
      largest = fmaxf(largest, fmaxf(scores[n][half * 2], scores[n][half * 2 + 1]));
    }
    largest = quad_max(largest);
    const float base = largest == -INFINITY ? 0.0f : largest * SCALE;
    // The difference first: it is 0 while the maximum stays. A decay from `base`, which is rounded, would never be quite
    // 1, and what it is off by would grow from tile to tile.
    const float decay = largest == -INFINITY ? 1.0f : power_of_two((rows.largest[half] - largest) * SCALE);
    rows.largest[half] = largest;
    float sum = rows.sum[half] * decay;
#pragma unroll
    for (int n = 0; n < SCORE_TILES; ++n) {
#pragma unroll
      for (int i = half * 2; i < half * 2 + 2; ++i) {
        scores[n][i] = power_of_two(fmaf(scores[n][i], SCALE, -base));
        sum += scores[n][i];
      }
    }
    rows.sum[half] = sum;
#pragma unroll
    for (int d = 0; d < DEPTH / 8; ++d) {
      rows.out[d][half * 2] *= decay;
      rows.out[d][half * 2 + 1] *= decay;
    }
  }
}

__device__ __forceinline__ void mix(Rows& rows, const float (&weights)[SCORE_TILES][4], const fp16* values, int lane) {
  const fp16* from = values + lane % 16 * PITCH + lane / 16 * 8;
#pragma unroll
  for (int n = 0; n < SCORE_TILES; n += 2) {  // 16 keys; sums of two tiles are laid out as one left operand
    const unsigned weight[4] = {packed(weights[n][0], weights[n][1]), packed(weights[n][2], weights[n][3]),
                                packed(weights[n + 1][0], weights[n + 1][1]),
                                packed(weights[n + 1][2], weights[n + 1][3])};
#pragma unroll
    for (int d = 0; d < DEPTH / 8; d += 2) {
      unsigned value[4];
      load_transposed(value, from + n * 8 * PITCH + d * 8);
      mma(rows.out[d], weight, value[0], value[1]);
      mma(rows.out[d + 1], weight, value[2], value[3]);
    }
  }
}

__device__ __forceinline__ void store_rows(const Rows& rows, fp16* __restrict__ out, int64_t first, int t) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const float scale = 1.0f / quad_sum(rows.sum[half]);
    const int64_t row = first + half * 8;
    if (row >= QUERIES) continue;
#pragma unroll
    for (int d = 0; d < DEPTH / 8; ++d) {
      *reinterpret_cast<__half2*>(out + row * DEPTH + d * 8 + t * 2) =
          __floats2half2_rn(rows.out[d][half * 2] * scale, rows.out[d][half * 2 + 1] * scale);
    }
  }
}

__global__ void __launch_bounds__(THREADS, 1)
    attend(const fp16* __restrict__ q, const fp16* __restrict__ k, const fp16* __restrict__ v, fp16* __restrict__ out) {
  extern __shared__ __align__(16) unsigned char shared[];
  fp16* const keys = reinterpret_cast<fp16*>(shared);
  fp16* const values = keys + 2 * TILE * PITCH;

  const int64_t head = blockIdx.y;
  const fp16* k_head = k + head * KEYS * DEPTH;
  const fp16* v_head = v + head * KEYS * DEPTH;
  const auto fetch = [&](int64_t tile) {
    if (tile < TILES) {
      const int stage = static_cast<int>(tile % 2);
      copy_tile(keys + stage * TILE * PITCH, k_head, tile * TILE);
      copy_tile(values + stage * TILE * PITCH, v_head, tile * TILE);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, t = lane % 4;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * BLOCK_QUERIES + warp * 16 + lane / 4;
  fetch(0);
  Rows rows{};
  rows.largest[0] = rows.largest[1] = -INFINITY;
  load_queries(rows, q + head * QUERIES * DEPTH, first, t);

  for (int64_t tile = 0; tile < TILES; ++tile) {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();  // the tile has landed for all, and all have left the one that is overwritten next
    fetch(tile + 1);
    const int stage = static_cast<int>(tile % 2);
    float scores[SCORE_TILES][4] = {};
    score(scores, rows, keys + stage * TILE * PITCH, lane);
    if constexpr (KEYS % TILE != 0) {
      if (tile == TILES - 1) mask_past_end(scores, tile * TILE, t);
    }
    soften(scores, rows);
    mix(rows, scores, values + stage * TILE * PITCH, lane);
  }
  store_rows(rows, out + head * QUERIES * DEPTH, first, t);
}

}  // namespace

extern "C" void run(const fp16* q, const fp16* k, const fp16* v, fp16* out, void* /*workspace*/, cudaStream_t stream) {
  cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  const dim3 blocks(static_cast<unsigned>((QUERIES + BLOCK_QUERIES - 1) / BLOCK_QUERIES), static_cast<unsigned>(HEADS));
  attend<<<blocks, THREADS, SHARED_BYTES, stream>>>(q, k, v, out);
}
