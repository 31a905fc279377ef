// Layer norm of few, long rows: many blocks share a row. The first kernel leaves each chunk's mean and squared deviations
// in the workspace, the second combines a row's chunks and writes it. Blocks that run together hold the same chunk of
// different rows, so that weight and bias come from memory once.
#include "problem.h"

namespace {

constexpr int64_t ROWS = X_SHAPE_0;
constexpr int64_t COLS = X_NUMEL / X_SHAPE_0;
constexpr float EPSILON = 1e-5f;

constexpr int THREADS = 512;       // tune: THREADS = 256 | 512 | 1024
constexpr int CHUNK_VECTORS = 16;  // tune: CHUNK_VECTORS = 4 | 8 | 16 | 32
constexpr int WARPS = THREADS / 32;
constexpr int WIDTH = COLS % 4 == 0 ? 4 : 1;  // elements of one load
constexpr int64_t CHUNK = static_cast<int64_t>(THREADS) * CHUNK_VECTORS * WIDTH;
constexpr int64_t CHUNKS = (COLS + CHUNK - 1) / CHUNK;

struct Moments {
  float count;
  float mean;
  float squares;  // sum of squared deviations from the mean
};

__device__ __forceinline__ Moments merged(Moments a, Moments b) {
  const float count = a.count + b.count;
  if (count == 0.0f) return a;
  const float distance = b.mean - a.mean, share = b.count / count;
  return {count, a.mean + distance * share, a.squares + b.squares + distance * distance * a.count * share};
}

__device__ __forceinline__ Moments warp_merged(Moments moments) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const Moments other{__shfl_xor_sync(0xffffffffu, moments.count, step),
                        __shfl_xor_sync(0xffffffffu, moments.mean, step),
                        __shfl_xor_sync(0xffffffffu, moments.squares, step)};
    moments = merged(moments, other);
  }
  return moments;
}

__device__ __forceinline__ Moments block_merged(Moments moments) {
  __shared__ Moments of_warps[WARPS];
  moments = warp_merged(moments);
  const int lane = threadIdx.x % 32;
  if (lane == 0) of_warps[threadIdx.x / 32] = moments;
  __syncthreads();
  return warp_merged(lane < WARPS ? of_warps[lane] : Moments{0.0f, 0.0f, 0.0f});
}

__device__ __forceinline__ float4 load(const float* __restrict__ from) {
  if constexpr (WIDTH == 4) {
    return *reinterpret_cast<const float4*>(from);
  } else {
    return make_float4(*from, 0.0f, 0.0f, 0.0f);
  }
}

__device__ __forceinline__ void add(Moments& sums, float shift, float value) {
  const float distance = value - shift;
  sums.count += 1.0f;
  sums.mean += distance;
  sums.squares = fmaf(distance, distance, sums.squares);
}

__global__ void __launch_bounds__(THREADS) measure(const float* __restrict__ x, Moments* __restrict__ of_chunks) {
  const int64_t row = blockIdx.x, chunk = blockIdx.y;
  const float* x_row = x + row * COLS;
  const int64_t first = chunk * CHUNK + static_cast<int64_t>(threadIdx.x) * WIDTH;

  // Sums of distances from a sample near the mean lose no digits when the mean is large.
  const float shift = x_row[chunk * CHUNK];
  Moments sums{0.0f, 0.0f, 0.0f};
#pragma unroll 8
  for (int v = 0; v < CHUNK_VECTORS; ++v) {
    const int64_t at = first + static_cast<int64_t>(v) * THREADS * WIDTH;
    if (at >= COLS) continue;
    const float4 four = load(x_row + at);
    add(sums, shift, four.x);
    if constexpr (WIDTH == 4) {
      add(sums, shift, four.y);
      add(sums, shift, four.z);
      add(sums, shift, four.w);
    }
  }
  Moments moments{0.0f, 0.0f, 0.0f};
  if (sums.count > 0.0f) {
    const float offset = sums.mean / sums.count;
    moments = {sums.count, shift + offset, fmaxf(sums.squares - sums.mean * offset, 0.0f)};
    if (sums.squares != sums.squares) moments.squares = sums.squares;  // fmaxf would lose a NaN
  }
  moments = block_merged(moments);
  if (threadIdx.x == 0) of_chunks[row * CHUNKS + chunk] = moments;
}

__global__ void __launch_bounds__(THREADS)
    normalize(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
              float* __restrict__ out, const Moments* __restrict__ of_chunks) {
  const int64_t row = ROWS - 1 - blockIdx.x;  // backwards: what was read last is still in the L2 cache
  const int64_t chunk = CHUNKS - 1 - blockIdx.y;
  Moments moments{0.0f, 0.0f, 0.0f};
  for (int64_t i = threadIdx.x; i < CHUNKS; i += THREADS) moments = merged(moments, of_chunks[row * CHUNKS + i]);
  moments = block_merged(moments);
  const float mean = moments.mean;
  const float scale = rsqrtf(moments.squares / static_cast<float>(COLS) + EPSILON);

  const int64_t first = chunk * CHUNK + static_cast<int64_t>(threadIdx.x) * WIDTH;
#pragma unroll 4
  for (int v = 0; v < CHUNK_VECTORS; ++v) {
    const int64_t at = first + static_cast<int64_t>(v) * THREADS * WIDTH;
    if (at >= COLS) continue;
    const float4 value = load(x + row * COLS + at), w = load(weight + at), b = load(bias + at);
    float* to = out + row * COLS + at;
    const float4 result = make_float4(
        fmaf((value.x - mean) * scale, w.x, b.x), fmaf((value.y - mean) * scale, w.y, b.y),
        fmaf((value.z - mean) * scale, w.z, b.z), fmaf((value.w - mean) * scale, w.w, b.w));
    if constexpr (WIDTH == 4) {
      __stcs(reinterpret_cast<float4*>(to), result);
    } else {
      *to = result.x;
    }
  }
}

}  // namespace

extern "C" size_t workspace_bytes() { return ROWS * CHUNKS * sizeof(Moments); }

extern "C" void run(const float* x, const float* norm_weight, const float* norm_bias, float* out, void* workspace,
                    cudaStream_t stream) {
  Moments* of_chunks = static_cast<Moments*>(workspace);
  const dim3 blocks(static_cast<unsigned>(ROWS), static_cast<unsigned>(CHUNKS));
  measure<<<blocks, THREADS, 0, stream>>>(x, of_chunks);
  normalize<<<blocks, THREADS, 0, stream>>>(x, norm_weight, norm_bias, out, of_chunks);
}
