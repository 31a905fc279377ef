// Softmax with a block per row: one sweep keeps the maximum and the rescaled sum together, a second one, mostly from the
// L2 cache, writes the quotients. Each thread has four 16-byte loads in flight.
#include "problem.h"

namespace {

constexpr int64_t COLS = X_SHAPE_1;
constexpr int64_t ROWS = X_SHAPE_0;
constexpr int THREADS = 1024;  // tune: THREADS = 256 | 512 | 1024
constexpr int WARPS = THREADS / 32;
constexpr int VECTORS = 4;
constexpr int WIDTH = COLS % 4 == 0 ? 4 : 1;  // elements of one load
constexpr int64_t STEP = static_cast<int64_t>(THREADS) * VECTORS * WIDTH;

struct Tally {
  float largest;
  float sum;  // of exp(x - largest)
};

__device__ __forceinline__ Tally merged(Tally a, Tally b) {
  const float largest = fmaxf(a.largest, b.largest);
  if (largest == -INFINITY) return {largest, a.sum + b.sum};
  return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

__device__ __forceinline__ Tally warp_merged(Tally tally) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    const Tally other{__shfl_xor_sync(0xffffffffu, tally.largest, step),
                      __shfl_xor_sync(0xffffffffu, tally.sum, step)};
    tally = merged(tally, other);
  }
  return tally;
}

// Loads VECTORS groups of WIDTH elements, -inf past the row's end.
__device__ __forceinline__ void load(float (&to)[VECTORS * WIDTH], const float* __restrict__ row, int64_t first) {
#pragma unroll
  for (int v = 0; v < VECTORS; ++v) {
    const int64_t at = first + (static_cast<int64_t>(v) * THREADS + threadIdx.x) * WIDTH;
    if constexpr (WIDTH == 4) {
      float4 four = make_float4(-INFINITY, -INFINITY, -INFINITY, -INFINITY);
      if (at < COLS) four = *reinterpret_cast<const float4*>(row + at);
      to[v * 4 + 0] = four.x;
      to[v * 4 + 1] = four.y;
      to[v * 4 + 2] = four.z;
      to[v * 4 + 3] = four.w;
    } else {
      to[v] = at < COLS ? row[at] : -INFINITY;
    }
  }
}

__global__ void __launch_bounds__(THREADS) softmax(const float* __restrict__ x, float* __restrict__ out) {
  __shared__ Tally tallies[WARPS];
  const float* x_row = x + static_cast<int64_t>(blockIdx.x) * COLS;
  float* out_row = out + static_cast<int64_t>(blockIdx.x) * COLS;

  Tally tally{-INFINITY, 0.0f};
  for (int64_t first = 0; first < COLS; first += STEP) {
    float values[VECTORS * WIDTH];
    load(values, x_row, first);
    float largest = tally.largest;
#pragma unroll
    for (const float value : values) largest = fmaxf(largest, value);
    const float base = largest == -INFINITY ? 0.0f : largest;  // nothing but -inf so far: its exponentials are 0
    tally.sum *= expf(tally.largest - base);
#pragma unroll
    for (const float value : values) tally.sum += expf(value - base);
    tally.largest = largest;
  }

  tally = warp_merged(tally);
  if (threadIdx.x % 32 == 0) tallies[threadIdx.x / 32] = tally;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  tally = warp_merged(lane < WARPS ? tallies[lane] : Tally{-INFINITY, 0.0f});
  const float scale = 1.0f / tally.sum;  // a row of -inf alone: 0 x inf, NaN as in torch

  for (int64_t first = 0; first < COLS; first += STEP) {
    float values[VECTORS * WIDTH];
    load(values, x_row, first);
#pragma unroll
    for (int v = 0; v < VECTORS; ++v) {
      const int64_t at = first + (static_cast<int64_t>(v) * THREADS + threadIdx.x) * WIDTH;
      if (at >= COLS) continue;
      if constexpr (WIDTH == 4) {
        const float* four = values + v * 4;
        __stcs(reinterpret_cast<float4*>(out_row + at),
               make_float4(expf(four[0] - tally.largest) * scale, expf(four[1] - tally.largest) * scale,
                           expf(four[2] - tally.largest) * scale, expf(four[3] - tally.largest) * scale));
      } else {
        out_row[at] = expf(values[v] - tally.largest) * scale;
      }
    }
  }
}

}  // namespace

extern "C" void run(const float* x, float* out, void* /*workspace*/, cudaStream_t stream) {
  softmax<<<static_cast<unsigned>(ROWS), THREADS, 0, stream>>>(x, out);
}
