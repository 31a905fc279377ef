// Convolution on the tensor cores in tf32, ReLU and max pooling (3, stride 2) in one kernel; the convolution's output
// never reaches memory. A block keeps all weights in shared memory and walks over groups of POOLED_ROWS pooled rows: it
// brings the image rows under a group, each warp computes 48 filters x one row of the convolution (mma.sync m16n8k8) and
// pools it along the row in registers, and what is left is pooled down the columns through shared memory.
#include "problem.h"

namespace {

constexpr int STRIDE = 4;
constexpr int PADDING = 2;
constexpr int BATCH = X_SHAPE_0, CHANNELS = X_SHAPE_1, HEIGHT = X_SHAPE_2, WIDTH = X_SHAPE_3;
constexpr int FILTERS = CONV_WEIGHT_SHAPE_0, KERNEL_H = CONV_WEIGHT_SHAPE_2, KERNEL_W = CONV_WEIGHT_SHAPE_3;
constexpr int CONV_H = (HEIGHT + 2 * PADDING - KERNEL_H) / STRIDE + 1;
constexpr int CONV_W = (WIDTH + 2 * PADDING - KERNEL_W) / STRIDE + 1;
constexpr int POOL = 3, POOL_STRIDE = 2;
constexpr int OUT_H = OUT_SHAPE_2, OUT_W = OUT_SHAPE_3;
constexpr int TAPS = CHANNELS * KERNEL_H * KERNEL_W;
constexpr int STEPS = (TAPS + 7) / 8;

constexpr int POOLED_ROWS = 2;  // tune: POOLED_ROWS = 1 | 2
constexpr int ROWS = (POOLED_ROWS - 1) * POOL_STRIDE + POOL;  // of the convolution, one more than pooled groups share
constexpr int ROW_GROUPS = (OUT_H + POOLED_ROWS - 1) / POOLED_ROWS;
constexpr int TILES = BATCH * ROW_GROUPS;
constexpr int IN_ROWS = (ROWS - 1) * STRIDE + KERNEL_H;
constexpr int COL_TILES = (CONV_W + 7) / 8;  // a warp computes one row of the convolution's output
constexpr int WARP_FILTERS = 48;
constexpr int ROW_TILES = WARP_FILTERS / 16;
constexpr int WARPS_DOWN = (FILTERS + WARP_FILTERS - 1) / WARP_FILTERS;
constexpr int THREADS = 32 * WARPS_DOWN * ROWS;
constexpr int PADDED_FILTERS = WARPS_DOWN * WARP_FILTERS;

constexpr int MARGIN = (PADDING + 3) / 4 * 4;  // zeros left of a row; keeps the image's columns 16-byte aligned
constexpr int REACH = (COL_TILES * 8 - 1) * STRIDE - PADDING + KERNEL_W;  // columns that the last tile looks at
constexpr int PITCH = (MARGIN + (REACH > WIDTH ? REACH : WIDTH) + 3) / 4 * 4;
constexpr int IMAGE_FLOATS = CHANNELS * IN_ROWS * PITCH;
constexpr int WEIGHT_PITCH = STEPS * 8 + 4;  // 4 mod 8: the fragments' 8 rows x 4 columns fall into 32 banks
constexpr int WEIGHT_FLOATS = PADDED_FILTERS * WEIGHT_PITCH;
constexpr int POOL_PITCH = COL_TILES * 4;  // maxima over three columns, one for every second column
constexpr int POOL_FLOATS = PADDED_FILTERS * ROWS * POOL_PITCH;
constexpr int SHARED_FLOATS = IMAGE_FLOATS > POOL_FLOATS ? IMAGE_FLOATS : POOL_FLOATS;  // one after the other
constexpr int SHARED_BYTES = (WEIGHT_FLOATS + STEPS * 8 + SHARED_FLOATS) * 4;

static_assert((CONV_H - POOL) / POOL_STRIDE + 1 == OUT_H, "another stride, padding or pooling");
static_assert((CONV_W - POOL) / POOL_STRIDE + 1 == OUT_W, "another stride, padding or pooling");
static_assert(SHARED_BYTES <= 227 * 1024, "weights and image rows exceed shared memory");
static_assert(COL_TILES <= 8 && THREADS <= 1024, "a row of outputs exceeds the registers");

__device__ __forceinline__ float to_tf32(float value) {
  unsigned rounded;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(value));
  return __uint_as_float(rounded);
}

__device__ __forceinline__ void mma(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Weights as rows of taps, rounded to tf32; zeros for the taps and filters that fill the last tiles.
__device__ __forceinline__ void bring_weights(float* weights, int* offsets, const float* __restrict__ weight) {
  for (int i = threadIdx.x; i < WEIGHT_FLOATS; i += THREADS) {
    const int filter = i / WEIGHT_PITCH, tap = i % WEIGHT_PITCH;
    const bool is_inside = filter < FILTERS && tap < TAPS;
    weights[i] = is_inside ? to_tf32(weight[filter * TAPS + tap]) : 0.0f;
  }
  for (int tap = threadIdx.x; tap < STEPS * 8; tap += THREADS) {  // where a tap lies, from an output's first one
    const int channel = tap / (KERNEL_H * KERNEL_W), row = tap / KERNEL_W % KERNEL_H;
    offsets[tap] = tap < TAPS ? (channel * IN_ROWS + row) * PITCH + tap % KERNEL_W : 0;
  }
}

__device__ __forceinline__ float4 load4(const float* __restrict__ row, int col) {
  float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if constexpr (WIDTH % 4 == 0) {
    if (col >= 0 && col < WIDTH) value = *reinterpret_cast<const float4*>(row + col);
  } else {
    if (col >= 0 && col + 0 < WIDTH) value.x = row[col + 0];
    if (col >= 0 && col + 1 < WIDTH) value.y = row[col + 1];
    if (col >= 0 && col + 2 < WIDTH) value.z = row[col + 2];
    if (col >= 0 && col + 3 < WIDTH) value.w = row[col + 3];
  }
  return value;
}

// The image's rows from `first_row` on, all channels, rounded to tf32, with zeros around.
__device__ __forceinline__ void bring_rows(float* rows, const float* __restrict__ image, int first_row) {
  constexpr int GROUPS = PITCH / 4;
#pragma unroll 4
  for (int i = threadIdx.x; i < CHANNELS * IN_ROWS * GROUPS; i += THREADS) {
    const int channel = i / (IN_ROWS * GROUPS), row = first_row + i / GROUPS % IN_ROWS;
    const int col = i % GROUPS * 4 - MARGIN;
    float4 value = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row >= 0 && row < HEIGHT) value = load4(image + (channel * HEIGHT + row) * WIDTH, col);
    value = make_float4(to_tf32(value.x), to_tf32(value.y), to_tf32(value.z), to_tf32(value.w));
    *reinterpret_cast<float4*>(rows + i * 4) = value;
  }
}

// Eight taps for a warp's 48 filters and one row of outputs. `weights` and `pixels` point to the lane's own elements.
template <bool IS_LAST>
__device__ __forceinline__ void multiply_taps(float (&sum)[ROW_TILES][COL_TILES][4], const float* weights,
                                              const float* pixels, const int* offsets, int t, int tap) {
  unsigned w[ROW_TILES][4];
#pragma unroll
  for (int i = 0; i < ROW_TILES; ++i) {
    const float* from = weights + i * 16 * WEIGHT_PITCH + tap;
    w[i][0] = __float_as_uint(from[0]);
    w[i][1] = __float_as_uint(from[8 * WEIGHT_PITCH]);
    w[i][2] = __float_as_uint(from[4]);
    w[i][3] = __float_as_uint(from[8 * WEIGHT_PITCH + 4]);
  }
  const float* low = pixels + offsets[tap + t];
  const float* high = pixels + offsets[tap + t + 4];
#pragma unroll
  for (int j = 0; j < COL_TILES; ++j) {
    unsigned p[2] = {__float_as_uint(low[j * 8 * STRIDE]), __float_as_uint(high[j * 8 * STRIDE])};
    if constexpr (IS_LAST) {  // taps past the last must not bring an infinity in
      p[0] = tap + t < TAPS ? p[0] : 0u;
      p[1] = tap + t + 4 < TAPS ? p[1] : 0u;
    }
#pragma unroll
    for (int i = 0; i < ROW_TILES; ++i) mma(sum[i][j], w[i], p);
  }
}

__device__ __forceinline__ float larger(float a, float b) {  // NaN when either is, as torch has it
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

// Largest of columns 2q, 2q + 1, 2q + 2 for q = 4 j + t: the lane has the first two, and the third is the next lane's
// first; for the last of four lanes it is in the next tile. Past the last tile it is unused.
__device__ __forceinline__ void pool_columns(float* to, const float (&sum)[COL_TILES][4], int half, int lane) {
  const int t = lane % 4;
#pragma unroll
  for (int j = 0; j < COL_TILES; ++j) {
    const float following = sum[j + 1 < COL_TILES ? j + 1 : j][half * 2];
    const float offered = t == 0 ? following : sum[j][half * 2];
    const float third = __shfl_sync(0xffffffffu, offered, lane / 4 * 4 + (t + 1) % 4);
    to[j * 4 + t] = larger(larger(sum[j][half * 2], sum[j][half * 2 + 1]), third);
  }
}

__global__ void __launch_bounds__(THREADS, 1)
    convolve_and_pool(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                      float* __restrict__ out) {
  extern __shared__ __align__(16) float shared[];
  float* const weights = shared;
  float* const image_rows = shared + WEIGHT_FLOATS;
  float* const pooled = image_rows;
  int* const offsets = reinterpret_cast<int*>(image_rows + SHARED_FLOATS);

  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int g = lane / 4, t = lane % 4;  // a fragment's row (or column) and its place within the four
  const int first_filter = warp % WARPS_DOWN * WARP_FILTERS, row = warp / WARPS_DOWN;
  const float* own_weights = weights + (first_filter + g) * WEIGHT_PITCH + t;
  const float* own_pixels = image_rows + row * STRIDE * PITCH + g * STRIDE + MARGIN - PADDING;

  bring_weights(weights, offsets, weight);
  for (int tile = blockIdx.x; tile < TILES; tile += gridDim.x) {
    const int image = tile / ROW_GROUPS, first_pooled = tile % ROW_GROUPS * POOLED_ROWS;
    const int first_row = first_pooled * POOL_STRIDE;
    __syncthreads();  // the maxima before have been used by all
    bring_rows(image_rows, x + static_cast<int64_t>(image) * CHANNELS * HEIGHT * WIDTH, first_row * STRIDE - PADDING);
    __syncthreads();

    float sum[ROW_TILES][COL_TILES][4] = {};
#pragma unroll 2
    for (int tap = 0; tap < TAPS / 8 * 8; tap += 8) {
      multiply_taps<false>(sum, own_weights, own_pixels, offsets, t, tap);
    }
    if constexpr (TAPS % 8 != 0) multiply_taps<true>(sum, own_weights, own_pixels, offsets, t, TAPS / 8 * 8);
    __syncthreads();  // the image rows make room for the maxima

#pragma unroll
    for (int i = 0; i < ROW_TILES; ++i) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int filter = first_filter + i * 16 + half * 8 + g;
        pool_columns(pooled + (filter * ROWS + row) * POOL_PITCH, sum[i], half, lane);
      }
    }
    __syncthreads();

    for (int i = threadIdx.x; i < FILTERS * POOLED_ROWS * OUT_W; i += THREADS) {
      const int filter = i / (POOLED_ROWS * OUT_W), down = i / OUT_W % POOLED_ROWS, col = i % OUT_W;
      if (first_pooled + down >= OUT_H) continue;
      const float* from = pooled + (filter * ROWS + down * POOL_STRIDE) * POOL_PITCH + col;
      const float largest = larger(larger(from[0], from[POOL_PITCH]), from[2 * POOL_PITCH]) + bias[filter];
      out[((static_cast<int64_t>(image) * FILTERS + filter) * OUT_H + first_pooled + down) * OUT_W + col] =
          larger(largest, 0.0f);
    }
  }
}

}  // namespace

extern "C" void run(const float* x, const float* conv_weight, const float* conv_bias, float* out, void* /*workspace*/,
                    cudaStream_t stream) {
  int device = 0, processors = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(convolve_and_pool, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  const int blocks = processors < TILES ? processors : TILES;
  convolve_and_pool<<<blocks, THREADS, SHARED_BYTES, stream>>>(x, conv_weight, conv_bias, out);
}
