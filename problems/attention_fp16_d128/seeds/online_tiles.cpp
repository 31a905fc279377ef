// Attention of bf16 without its matrix of scores in memory: 8 queries at a time walk over the keys in tiles of 64, keeping
// the running maximum and sum of each query (online softmax). Keys and values become float32 once, keys transposed, so
// that a tile's scores are sums in registers with keys as vector lanes.
#include "problem.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

constexpr int64_t HEADS = Q_SHAPE_0 * Q_SHAPE_1;  // of all batches
constexpr int64_t QUERIES = Q_SHAPE_2;
constexpr int64_t KEYS = K_SHAPE_2;
constexpr int64_t DEPTH = Q_SHAPE_3;

constexpr int64_t TILE = 64;  // tune: TILE = 32 | 64 | 128
constexpr int ROWS = 8;
constexpr int LANES = 16;
constexpr int VECTORS = 2;
constexpr int64_t STEP = LANES * VECTORS;
constexpr int64_t TILES = (KEYS + TILE - 1) / TILE;
constexpr int64_t WIDTH = (DEPTH + STEP - 1) / STEP * STEP;  // of a row of values, with zeros at its end
constexpr int64_t BLOCKS = (QUERIES + ROWS - 1) / ROWS;
constexpr int64_t KEY_TILE = DEPTH * TILE;
constexpr int64_t VALUE_TILE = TILE * WIDTH;
constexpr int64_t HEAD_FLOATS = TILES * (KEY_TILE + VALUE_TILE);

static_assert(TILE % STEP == 0 && V_SHAPE_3 == DEPTH, "heads of another form");

typedef float Vector __attribute__((vector_size(4 * LANES)));

// sums += left x right: `left` is ROWS x depth, `right` depth x 32 with rows `pitch` apart, `sums` rows `pitch` apart too.
void multiply(const float* left, int64_t left_pitch, const float* right, int64_t pitch, int64_t depth, float* sums) {
  Vector sum[ROWS][VECTORS];
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i) std::memcpy(sum[i], sums + i * pitch, sizeof(sum[i]));
  for (int64_t d = 0; d < depth; ++d) {
    const Vector* from = reinterpret_cast<const Vector*>(right + d * pitch);
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; ++i) {
#pragma GCC unroll 2
      for (int v = 0; v < VECTORS; ++v) sum[i][v] += left[i * left_pitch + d] * from[v];
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; ++i) std::memcpy(sums + i * pitch, sum[i], sizeof(sum[i]));
}

// Writes a tile of keys (transposed) and values as float32; zeros past the last key.
void widen(const bf16* k, const bf16* v, float* keys, float* values, int64_t first) {
  for (int64_t i = 0; i < TILE; ++i) {
    const bool is_key = first + i < KEYS;
    for (int64_t d = 0; d < DEPTH; ++d) keys[d * TILE + i] = is_key ? float(k[(first + i) * DEPTH + d]) : 0.0f;
    for (int64_t d = 0; d < WIDTH; ++d) {
      values[i * WIDTH + d] = is_key && d < DEPTH ? float(v[(first + i) * DEPTH + d]) : 0.0f;
    }
  }
}

struct Rows {
  alignas(64) float queries[ROWS * DEPTH];
  alignas(64) float scores[ROWS * TILE];
  alignas(64) float out[ROWS * WIDTH];
  float largest[ROWS];
  float sum[ROWS];
};

// Turns one row's scores into exponentials and rescales what was summed under a smaller maximum.
void soften(Rows& rows, int row, int64_t keys) {
  float* scores = rows.scores + row * TILE;
  float largest = rows.largest[row];
#pragma omp simd reduction(max : largest)
  for (int64_t i = 0; i < keys; ++i) largest = std::max(largest, scores[i]);
  const float base = largest == -INFINITY ? 0.0f : largest;
  float sum = 0.0f;
  for (int64_t i = 0; i < TILE; ++i) {
    scores[i] = i < keys ? std::exp(scores[i] - base) : 0.0f;
    sum += scores[i];
  }
  const float decay = std::exp(rows.largest[row] - base);
  for (int64_t d = 0; d < WIDTH; ++d) rows.out[row * WIDTH + d] *= decay;
  rows.sum[row] = rows.sum[row] * decay + sum;
  rows.largest[row] = largest;
}

void attend(Rows& rows, const float* head) {
  for (int64_t tile = 0; tile < TILES; ++tile) {
    const float* keys = head + tile * (KEY_TILE + VALUE_TILE);
    const float* values = keys + KEY_TILE;
    std::fill(rows.scores, rows.scores + ROWS * TILE, 0.0f);
    for (int64_t i = 0; i < TILE; i += STEP) multiply(rows.queries, DEPTH, keys + i, TILE, DEPTH, rows.scores + i);
    for (int row = 0; row < ROWS; ++row) soften(rows, row, std::min(TILE, KEYS - tile * TILE));
    for (int64_t d = 0; d < WIDTH; d += STEP) multiply(rows.scores, TILE, values + d, WIDTH, TILE, rows.out + d);
  }
}

// Queries past the last repeat it and are not stored.
void attend_block(const bf16* q, const float* head, bf16* out, int64_t first) {
  const float scale = 1.0f / std::sqrt(static_cast<float>(DEPTH));
  Rows rows;
  for (int i = 0; i < ROWS; ++i) {
    const bf16* from = q + std::min(first + i, QUERIES - 1) * DEPTH;
    for (int64_t d = 0; d < DEPTH; ++d) rows.queries[i * DEPTH + d] = float(from[d]) * scale;
    rows.largest[i] = -INFINITY;
    rows.sum[i] = 0.0f;
  }
  std::fill(rows.out, rows.out + ROWS * WIDTH, 0.0f);
  attend(rows, head);
  for (int i = 0; i < ROWS && first + i < QUERIES; ++i) {
    const float share = 1.0f / rows.sum[i];
    for (int64_t d = 0; d < DEPTH; ++d) out[(first + i) * DEPTH + d] = bf16(rows.out[i * WIDTH + d] * share);
  }
}

}  // namespace

extern "C" size_t workspace_bytes() { return HEADS * HEAD_FLOATS * sizeof(float); }

extern "C" void run(const bf16* q, const bf16* k, const bf16* v, bf16* out, void* workspace) {
  float* heads = static_cast<float*>(workspace);
#pragma omp parallel
  {
#pragma omp for collapse(2) schedule(static)
    for (int64_t head = 0; head < HEADS; ++head) {
      for (int64_t tile = 0; tile < TILES; ++tile) {
        float* keys = heads + head * HEAD_FLOATS + tile * (KEY_TILE + VALUE_TILE);
        widen(k + head * KEYS * DEPTH, v + head * KEYS * DEPTH, keys, keys + KEY_TILE, tile * TILE);
      }
    }

#pragma omp for collapse(2) schedule(static)
    for (int64_t head = 0; head < HEADS; ++head) {
      for (int64_t block = 0; block < BLOCKS; ++block) {
        attend_block(q + head * QUERIES * DEPTH, heads + head * HEAD_FLOATS, out + head * QUERIES * DEPTH,
                     block * ROWS);
      }
    }
  }
}
