// Convolution as a matrix product in float32 arithmetic that never writes its patches to memory: rows are filters,
// columns are output pixels, the inner dimension is the taps. A block computes 96 filters x 128 pixels, a thread 6 x 8.
#include "problem.h"

namespace {

constexpr int STRIDE = 4;
constexpr int PADDING = 2;
constexpr int BATCH = X_SHAPE_0, CHANNELS = X_SHAPE_1, HEIGHT = X_SHAPE_2, WIDTH = X_SHAPE_3;
constexpr int FILTERS = CONV_WEIGHT_SHAPE_0, KERNEL_H = CONV_WEIGHT_SHAPE_2, KERNEL_W = CONV_WEIGHT_SHAPE_3;
constexpr int OUT_H = OUT_SHAPE_2, OUT_W = OUT_SHAPE_3;
constexpr int TAPS = CHANNELS * KERNEL_H * KERNEL_W;
constexpr int64_t PIXELS = static_cast<int64_t>(BATCH) * OUT_H * OUT_W;

static_assert((HEIGHT + 2 * PADDING - KERNEL_H) / STRIDE + 1 == OUT_H, "another stride or padding");
static_assert((WIDTH + 2 * PADDING - KERNEL_W) / STRIDE + 1 == OUT_W, "another stride or padding");

constexpr int DEPTH = 8;  // tune: DEPTH = 8 | 16
constexpr int THREADS = 256;
constexpr int TILE_FILTERS = 96;
constexpr int TILE_PIXELS = 128;
constexpr int WEIGHT_PITCH = TILE_FILTERS + 4;
constexpr int WEIGHT_LOADS = TILE_FILTERS * DEPTH / THREADS;
constexpr int PATCH_LOADS = TILE_PIXELS * DEPTH / THREADS;

__global__ void __launch_bounds__(THREADS, 2)
    convolve(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
             float* __restrict__ out) {
  __shared__ __align__(16) float weights[DEPTH][WEIGHT_PITCH];
  __shared__ __align__(16) float patches[DEPTH][TILE_PIXELS];

  const int thread = threadIdx.x;
  const int64_t first_pixel = static_cast<int64_t>(blockIdx.x) * TILE_PIXELS;
  const int first_filter = static_cast<int>(blockIdx.y) * TILE_FILTERS;

  // A thread always fetches for the same pixel.
  const int64_t pixel = first_pixel + thread % TILE_PIXELS;
  const bool has_pixel = pixel < PIXELS;
  const int image = static_cast<int>(pixel / (OUT_H * OUT_W));
  const int top = static_cast<int>(pixel / OUT_W % OUT_H) * STRIDE - PADDING;
  const int left = static_cast<int>(pixel % OUT_W) * STRIDE - PADDING;
  float next_weights[WEIGHT_LOADS], next_patches[PATCH_LOADS];

  const auto fetch = [&](int first_tap) {
#pragma unroll
    for (int i = 0; i < WEIGHT_LOADS; ++i) {
      const int element = thread + i * THREADS;
      const int filter = first_filter + element / DEPTH, tap = first_tap + element % DEPTH;
      const bool is_inside = filter < FILTERS && tap < TAPS;
      next_weights[i] = is_inside ? weight[static_cast<int64_t>(filter) * TAPS + tap] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < PATCH_LOADS; ++i) {
      const int tap = first_tap + thread / TILE_PIXELS + i * (THREADS / TILE_PIXELS);
      const int channel = tap / (KERNEL_H * KERNEL_W);
      const int row = top + tap / KERNEL_W % KERNEL_H, col = left + tap % KERNEL_W;
      const bool is_inside = has_pixel && tap < TAPS && row >= 0 && row < HEIGHT && col >= 0 && col < WIDTH;
      const int64_t at = ((static_cast<int64_t>(image) * CHANNELS + channel) * HEIGHT + row) * WIDTH + col;
      next_patches[i] = is_inside ? x[at] : 0.0f;
    }
  };
  const auto store = [&] {
#pragma unroll
    for (int i = 0; i < WEIGHT_LOADS; ++i) {
      const int element = thread + i * THREADS;
      weights[element % DEPTH][element / DEPTH] = next_weights[i];
    }
#pragma unroll
    for (int i = 0; i < PATCH_LOADS; ++i) {
      patches[thread / TILE_PIXELS + i * (THREADS / TILE_PIXELS)][thread % TILE_PIXELS] = next_patches[i];
    }
  };

  const int filter = thread / 16 * 6, column = thread % 16 * 4;  // a thread's pixels: two groups of four, 64 apart
  float sum[6][8] = {};

  fetch(0);
  for (int tap = 0; tap < TAPS; tap += DEPTH) {
    store();
    __syncthreads();
    if (tap + DEPTH < TAPS) fetch(tap + DEPTH);
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      float w[6], p[8];
#pragma unroll
      for (int i = 0; i < 6; i += 2) {
        *reinterpret_cast<float2*>(&w[i]) = *reinterpret_cast<const float2*>(&weights[d][filter + i]);
      }
      *reinterpret_cast<float4*>(&p[0]) = *reinterpret_cast<const float4*>(&patches[d][column]);
      *reinterpret_cast<float4*>(&p[4]) = *reinterpret_cast<const float4*>(&patches[d][column + 64]);
#pragma unroll
      for (int i = 0; i < 6; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] = fmaf(w[i], p[j], sum[i][j]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int j = 0; j < 8; ++j) {
    const int64_t to = first_pixel + column + j % 4 + j / 4 * 64;
    if (to >= PIXELS) continue;
    float* plane = out + to / (OUT_H * OUT_W) * FILTERS * OUT_H * OUT_W + to % (OUT_H * OUT_W);
#pragma unroll
    for (int i = 0; i < 6; ++i) {
      const int f = first_filter + filter + i;
      if (f < FILTERS) plane[static_cast<int64_t>(f) * OUT_H * OUT_W] = sum[i][j] + bias[f];
    }
  }
}

}  // namespace

extern "C" void run(const float* x, const float* conv_weight, const float* conv_bias, float* out, void* /*workspace*/,
                    cudaStream_t stream) {
  const dim3 blocks(static_cast<unsigned>((PIXELS + TILE_PIXELS - 1) / TILE_PIXELS),
                    (FILTERS + TILE_FILTERS - 1) / TILE_FILTERS);
  convolve<<<blocks, THREADS, 0, stream>>>(x, conv_weight, conv_bias, out);
}
