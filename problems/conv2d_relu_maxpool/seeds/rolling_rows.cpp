// Convolution, ReLU and max pooling (3, stride 2) in one pass; the convolution's output lives three rows at a time. A thread
// walks down a part of an image, computes each row of the convolution once (8 pixels x 32 filters in registers) into a
// ring of three rows and pools them as soon as the third is there.
#include "problem.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

namespace {

constexpr int64_t STRIDE = 4;
constexpr int64_t PADDING = 2;
constexpr int64_t BATCH = X_SHAPE_0, CHANNELS = X_SHAPE_1, HEIGHT = X_SHAPE_2, WIDTH = X_SHAPE_3;
constexpr int64_t FILTERS = CONV_WEIGHT_SHAPE_0, KERNEL_H = CONV_WEIGHT_SHAPE_2, KERNEL_W = CONV_WEIGHT_SHAPE_3;
constexpr int64_t CONV_H = (HEIGHT + 2 * PADDING - KERNEL_H) / STRIDE + 1;
constexpr int64_t CONV_W = (WIDTH + 2 * PADDING - KERNEL_W) / STRIDE + 1;
constexpr int64_t POOL = 3, POOL_STRIDE = 2;
constexpr int64_t OUT_H = OUT_SHAPE_2, OUT_W = OUT_SHAPE_3;
constexpr int64_t TAPS = CHANNELS * KERNEL_H * KERNEL_W;

constexpr int PIXELS = 8;
constexpr int LANES = 16;
constexpr int VECTORS = 2;
constexpr int64_t GROUP = LANES * VECTORS;  // filters that a tile computes
constexpr int64_t GROUPS = (FILTERS + GROUP - 1) / GROUP;
constexpr int64_t TILES = (CONV_W + PIXELS - 1) / PIXELS;
constexpr int64_t REACH = (TILES * PIXELS - 1) * STRIDE + KERNEL_W;  // columns that a row's last tile looks at
constexpr int64_t PITCH = REACH > WIDTH + PADDING ? REACH : WIDTH + PADDING;
constexpr int64_t STRIP = CHANNELS * KERNEL_H * PITCH;  // the image rows under one row of outputs, with zeros around

constexpr int64_t PARTS = 3;  // tune: PARTS = 1 | 3 | 9
constexpr int64_t PART_ROWS = (OUT_H + PARTS - 1) / PARTS;  // pooled rows that one thread computes in one go
constexpr int64_t ROW = FILTERS * TILES * PIXELS;           // one row of the convolution
constexpr int64_t SCRATCH = STRIP + POOL * ROW;

static_assert((CONV_H - POOL) / POOL_STRIDE + 1 == OUT_H, "another stride, padding or pooling");
static_assert((CONV_W - POOL) / POOL_STRIDE + 1 == OUT_W, "another stride, padding or pooling");

typedef float Vector __attribute__((vector_size(4 * LANES)));

// Lays the weights out as panels of 32 filters: all filters' weights of one tap side by side.
void pack(const float* weight, float* panel, int64_t first_filter) {
  for (int64_t tap = 0; tap < TAPS; ++tap) {
    for (int64_t j = 0; j < GROUP; ++j) {
      panel[tap * GROUP + j] = first_filter + j < FILTERS ? weight[(first_filter + j) * TAPS + tap] : 0.0f;
    }
  }
}

void bring_strip(const float* image, float* strip, int64_t out_row) {
  for (int64_t channel = 0; channel < CHANNELS; ++channel) {
    for (int64_t tap = 0; tap < KERNEL_H; ++tap) {
      const int64_t row = out_row * STRIDE - PADDING + tap;
      float* to = strip + (channel * KERNEL_H + tap) * PITCH;
      std::fill(to, to + PITCH, 0.0f);
      if (row < 0 || row >= HEIGHT) continue;
      std::memcpy(to + PADDING, image + (channel * HEIGHT + row) * WIDTH, WIDTH * sizeof(float));
    }
  }
}

// Computes 8 pixels of one row for 32 filters; `values` gets them filter by filter.
void convolve_tile(const float* strip, const float* panel, float (&values)[GROUP][PIXELS]) {
  const Vector* weights = reinterpret_cast<const Vector*>(panel);
  Vector sum[PIXELS][VECTORS] = {};
  for (int64_t line = 0; line < CHANNELS * KERNEL_H; ++line) {
    for (int64_t tap = 0; tap < KERNEL_W; ++tap) {
      const float* pixels = strip + line * PITCH + tap;
      const Vector* w = weights + (line * KERNEL_W + tap) * VECTORS;
#pragma GCC unroll 8
      for (int i = 0; i < PIXELS; ++i) {
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; ++v) sum[i][v] += pixels[i * STRIDE] * w[v];
      }
    }
  }
  alignas(64) float by_pixel[PIXELS][GROUP];
  std::memcpy(by_pixel, sum, sizeof(by_pixel));
  for (int64_t j = 0; j < GROUP; ++j) {
    for (int i = 0; i < PIXELS; ++i) values[j][i] = by_pixel[i][j];
  }
}

void convolve_row(const float* strip, const float* panels, float* row) {
  for (int64_t group = 0; group < GROUPS; ++group) {
    const int64_t filters = std::min(GROUP, FILTERS - group * GROUP);
    for (int64_t tile = 0; tile < TILES; ++tile) {
      float values[GROUP][PIXELS];
      convolve_tile(strip + tile * PIXELS * STRIDE, panels + group * TAPS * GROUP, values);
      for (int64_t j = 0; j < filters; ++j) {
        std::memcpy(row + ((group * GROUP + j) * TILES + tile) * PIXELS, values[j], sizeof(values[j]));
      }
    }
  }
}

inline float larger(float a, float b) { return a != a || a > b ? a : b; }  // NaN when either is, as torch has it

// Pools the ring's three rows into one; a bias common to a window may follow its maximum.
void pool_rows(const float* ring, const float* bias, float* out) {
  for (int64_t filter = 0; filter < FILTERS; ++filter) {
    const float* rows = ring + filter * TILES * PIXELS;
    float down[TILES * PIXELS];
    for (int64_t i = 0; i < CONV_W; ++i) down[i] = larger(larger(rows[i], rows[ROW + i]), rows[2 * ROW + i]);
    float* to = out + filter * OUT_H * OUT_W;
    for (int64_t i = 0; i < OUT_W; ++i) {
      const float* from = down + i * POOL_STRIDE;
      to[i] = larger(larger(larger(from[0], from[1]), from[2]) + bias[filter], 0.0f);
    }
  }
}

void compute_part(const float* image, const float* panels, const float* bias, float* out, float* scratch,
                  int64_t first) {
  float* strip = scratch;
  float* ring = scratch + STRIP;
  const int64_t end = std::min(first + PART_ROWS, OUT_H);
  int64_t next = first * POOL_STRIDE;  // the first row of the convolution that is not yet there
  for (int64_t pooled = first; pooled < end; ++pooled) {
    for (; next < pooled * POOL_STRIDE + POOL; ++next) {
      bring_strip(image, strip, next);
      convolve_row(strip, panels, ring + next % POOL * ROW);
    }
    pool_rows(ring, bias, out + pooled * OUT_W);
  }
}

}  // namespace

extern "C" size_t workspace_bytes() {
  return (GROUPS * TAPS * GROUP + omp_get_max_threads() * SCRATCH) * sizeof(float);
}

extern "C" void run(const float* x, const float* conv_weight, const float* conv_bias, float* out, void* workspace) {
  float* panels = static_cast<float*>(workspace);
#pragma omp parallel
  {
    float* scratch = panels + GROUPS * TAPS * GROUP + omp_get_thread_num() * SCRATCH;
#pragma omp for schedule(static)
    for (int64_t group = 0; group < GROUPS; ++group) pack(conv_weight, panels + group * TAPS * GROUP, group * GROUP);

#pragma omp for collapse(2) schedule(static)
    for (int64_t image = 0; image < BATCH; ++image) {
      for (int64_t part = 0; part < PARTS; ++part) {
        compute_part(x + image * CHANNELS * HEIGHT * WIDTH, panels, conv_bias, out + image * FILTERS * OUT_H * OUT_W,
                     scratch, part * PART_ROWS);
      }
    }
  }
}
