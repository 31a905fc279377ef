// Direct convolution, a row of outputs at a time: the image rows under it are copied once, with zeros around, and tiles of
// 8 pixels x 32 filters are summed in registers over all taps. Weights are packed so that filters are vector lanes.
#include "problem.h"

#include <omp.h>

#include <algorithm>
#include <cstring>

namespace {

constexpr int64_t STRIDE = 4;
constexpr int64_t PADDING = 2;
constexpr int64_t BATCH = X_SHAPE_0, CHANNELS = X_SHAPE_1, HEIGHT = X_SHAPE_2, WIDTH = X_SHAPE_3;
constexpr int64_t FILTERS = CONV_WEIGHT_SHAPE_0, KERNEL_H = CONV_WEIGHT_SHAPE_2, KERNEL_W = CONV_WEIGHT_SHAPE_3;
constexpr int64_t CONV_H = OUT_SHAPE_2, CONV_W = OUT_SHAPE_3;
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

static_assert((HEIGHT + 2 * PADDING - KERNEL_H) / STRIDE + 1 == CONV_H, "another stride or padding");
static_assert((WIDTH + 2 * PADDING - KERNEL_W) / STRIDE + 1 == CONV_W, "another stride or padding");

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

void convolve_row(const float* strip, const float* panels, const float* bias, float* out) {
  for (int64_t group = 0; group < GROUPS; ++group) {
    const int64_t filters = std::min(GROUP, FILTERS - group * GROUP);
    for (int64_t tile = 0; tile < TILES; ++tile) {
      float values[GROUP][PIXELS];
      convolve_tile(strip + tile * PIXELS * STRIDE, panels + group * TAPS * GROUP, values);
      const int64_t pixels = std::min<int64_t>(PIXELS, CONV_W - tile * PIXELS);
      for (int64_t j = 0; j < filters; ++j) {
        float* to = out + (group * GROUP + j) * CONV_H * CONV_W + tile * PIXELS;
        for (int64_t i = 0; i < pixels; ++i) to[i] = values[j][i] + bias[group * GROUP + j];
      }
    }
  }
}

}  // namespace

extern "C" size_t workspace_bytes() { return (GROUPS * TAPS * GROUP + omp_get_max_threads() * STRIP) * sizeof(float); }

extern "C" void run(const float* x, const float* conv_weight, const float* conv_bias, float* out, void* workspace) {
  float* panels = static_cast<float*>(workspace);
  float* strips = panels + GROUPS * TAPS * GROUP;
#pragma omp parallel
  {
    float* strip = strips + omp_get_thread_num() * STRIP;
#pragma omp for schedule(static)
    for (int64_t group = 0; group < GROUPS; ++group) pack(conv_weight, panels + group * TAPS * GROUP, group * GROUP);

#pragma omp for collapse(2) schedule(static)
    for (int64_t image = 0; image < BATCH; ++image) {
      for (int64_t row = 0; row < CONV_H; ++row) {
        bring_strip(x + image * CHANNELS * HEIGHT * WIDTH, strip, row);
        convolve_row(strip, panels, conv_bias, out + (image * FILTERS * CONV_H + row) * CONV_W);
      }
    }
  }
}
