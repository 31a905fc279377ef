//: vectors
typedef float Vector __attribute__((vector_size(64)));
typedef float Unaligned __attribute__((vector_size(64), aligned(4), may_alias));

constexpr int BUFFER_ROWS = (ROW_BLOCK - 1) * STRIDE_Y + (TAP_ROWS - 1) * DILATION_Y + 1;
constexpr int COL_BLOCKS = (OUT_COLS + BLOCK_COLS - 1) / BLOCK_COLS;
constexpr int FILTER_BLOCKS = (FILTERS + BLOCK_FILTERS - 1) / BLOCK_FILTERS;
constexpr int BLOCK = BLOCK_COLS * BLOCK_FILTERS;
constexpr int TAPS = TAP_ROWS * TAP_COLS;
// What the last block of a row reads, whether or not anybody wants its outputs.
constexpr int PADDED_COLS = (COL_BLOCKS * BLOCK_COLS - 1) * STRIDE_X + (TAP_COLS - 1) * DILATION_X + 1;
constexpr int PHASE = (PADDED_COLS + PHASES - 1) / PHASES + 15;
constexpr int PITCH = PHASES * PHASE;
//: copy_rows
// Input rows with their padding, as fp32; columns of one phase of the stride lie together.
static void copy_rows(float* rows, const Element* x, int64_t image, int first_row) {
  for (int line = 0; line < CHANNELS * BUFFER_ROWS; ++line) {
    const int y = first_row * STRIDE_Y - PAD_Y + line % BUFFER_ROWS;
    const int64_t plane = image * CHANNELS + line / BUFFER_ROWS;
    float* to = rows + static_cast<int64_t>(line) * PITCH;
    if (y < 0 || y >= HEIGHT) {
      for (int col = 0; col < PITCH; ++col) to[col] = 0.0f;
      continue;
    }
    const Element* from = x + (plane * HEIGHT + y) * WIDTH;
    for (int phase = 0; phase < PHASES; ++phase) {
      for (int col = 0; col < PHASE; ++col) {
        const int at = col * PHASES + phase - PAD_X;
        to[phase * PHASE + col] = at >= 0 && at < WIDTH ? static_cast<float>(from[at]) : 0.0f;
      }
    }
  }
}
//: prefetch
static void prefetch_rows(const Element* x, int64_t image, int first_row) {
  for (int line = 0; line < CHANNELS * BUFFER_ROWS; ++line) {
    const int y = first_row * STRIDE_Y - PAD_Y + line % BUFFER_ROWS;
    if (y < 0 || y >= HEIGHT) continue;
    const Element* from = x + ((image * CHANNELS + line / BUFFER_ROWS) * HEIGHT + y) * WIDTH;
    for (int col = 0; col < WIDTH; col += 64 / static_cast<int>(sizeof(Element))) __builtin_prefetch(from + col);
  }
}
//: pack_filters
// [filter block][channel][tap][filter], zero where a block has fewer filters.
static void pack_weights(const Element* weights, float* packed) {
#pragma omp for schedule(static)
  for (int64_t line = 0; line < static_cast<int64_t>(FILTER_BLOCKS) * CHANNELS * TAPS; ++line) {
    const int64_t first = line / (CHANNELS * TAPS) * BLOCK_FILTERS, tap = line % (CHANNELS * TAPS);
    for (int i = 0; i < BLOCK_FILTERS; ++i) {
      const int64_t filter = first + i;
      packed[line * BLOCK_FILTERS + i] =
          filter < FILTERS ? static_cast<float>(weights[filter * (CHANNELS * TAPS) + tap]) : 0.0f;
    }
  }
}
//: block_filters
// Adds some channels to a register block of filters x neighbouring outputs: sums[output][filter].
static inline __attribute__((always_inline)) void multiply(float* sums, const float* rows, const float* weights,
                                                           int first_channel, int last_channel) {
  Vector block[BLOCK_COLS][FILTER_VECTORS];
#pragma GCC unroll 32
  for (int i = 0; i < BLOCK_COLS; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < FILTER_VECTORS; ++j) {
      block[i][j] = first_channel ? *reinterpret_cast<Unaligned*>(sums + i * BLOCK_FILTERS + 16 * j) : Vector{};
    }
  }
  const float* packed = weights + static_cast<int64_t>(first_channel) * (TAPS * BLOCK_FILTERS);
  for (int channel = first_channel; channel < last_channel; ++channel) {
    for (int row = 0; row < TAP_ROWS; ++row) {
      const float* from = rows + (static_cast<int64_t>(channel) * BUFFER_ROWS + row * DILATION_Y) * PITCH;
#pragma GCC unroll 1
      for (int col = 0; col < TAP_COLS; ++col) {
        Vector filters[FILTER_VECTORS];
#pragma GCC unroll 8
        for (int j = 0; j < FILTER_VECTORS; ++j) filters[j] = *reinterpret_cast<const Unaligned*>(packed + 16 * j);
#pragma GCC unroll 32
        for (int i = 0; i < BLOCK_COLS; ++i) {
          const float value = from[i * STRIDE_X];
#pragma GCC unroll 8
          for (int j = 0; j < FILTER_VECTORS; ++j) block[i][j] += filters[j] * value;
        }
        from += DILATION_X;
        packed += BLOCK_FILTERS;
      }
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < BLOCK_COLS; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < FILTER_VECTORS; ++j) {
      *reinterpret_cast<Unaligned*>(sums + i * BLOCK_FILTERS + 16 * j) = block[i][j];
    }
  }
}

static inline int sum_at(int filter, int col) { return col * BLOCK_FILTERS + filter; }
static inline const float* block_weights(const float* packed, int filter_block) {
  return packed + static_cast<int64_t>(filter_block) * (CHANNELS * TAPS * BLOCK_FILTERS);
}
//: block_cols
// Adds some channels to a register block of filters x vectors of outputs: sums[filter][output].
static inline __attribute__((always_inline)) void multiply(float* sums, const float* rows, const Element* weights,
                                                           int first_channel, int last_channel, int filters) {
  Vector block[BLOCK_FILTERS][COL_VECTORS];
#pragma GCC unroll 32
  for (int i = 0; i < BLOCK_FILTERS; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < COL_VECTORS; ++j) {
      block[i][j] = first_channel ? *reinterpret_cast<Unaligned*>(sums + i * BLOCK_COLS + 16 * j) : Vector{};
    }
  }
  int64_t starts[BLOCK_FILTERS];  // a block's last filters may be missing: they repeat the first
#pragma GCC unroll 32
  for (int i = 0; i < BLOCK_FILTERS; ++i) starts[i] = i < filters ? static_cast<int64_t>(i) * (CHANNELS * TAPS) : 0;
  for (int channel = first_channel; channel < last_channel; ++channel) {
    for (int row = 0; row < TAP_ROWS; ++row) {
      const float* from = rows + (static_cast<int64_t>(channel) * BUFFER_ROWS + row * DILATION_Y) * PITCH;
      const Element* taps = weights + channel * TAPS + row * TAP_COLS;
#pragma GCC unroll 1
      for (int col = 0; col < TAP_COLS; ++col) {
        const float* at = from + col * DILATION_X % PHASES * PHASE + col * DILATION_X / PHASES;
        Vector values[COL_VECTORS];
#pragma GCC unroll 8
        for (int j = 0; j < COL_VECTORS; ++j) values[j] = *reinterpret_cast<const Unaligned*>(at + 16 * j);
#pragma GCC unroll 32
        for (int i = 0; i < BLOCK_FILTERS; ++i) {
          const float weight = static_cast<float>(taps[starts[i] + col]);
#pragma GCC unroll 8
          for (int j = 0; j < COL_VECTORS; ++j) block[i][j] += values[j] * weight;
        }
      }
    }
  }
#pragma GCC unroll 32
  for (int i = 0; i < BLOCK_FILTERS; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < COL_VECTORS; ++j) {
      *reinterpret_cast<Unaligned*>(sums + i * BLOCK_COLS + 16 * j) = block[i][j];
    }
  }
}

static inline int sum_at(int filter, int col) { return filter * BLOCK_COLS + col; }
static inline const Element* block_weights(const Element* weights, int filter_block) {
  return weights + static_cast<int64_t>(filter_block) * BLOCK_FILTERS * (CHANNELS * TAPS);
}
//: compute_rows
alignas(64) static thread_local float buffer[CHANNELS * BUFFER_ROWS * PITCH + 16];
alignas(64) static thread_local float partial[ROW_BLOCK * COL_BLOCKS * BLOCK];

// Computes `count` rows of one image's output, all filters, into `target`, which holds TARGET_ROWS rows a filter in turn.
static void compute_rows(const Element* x, const Weight* weights, BIAS_PARAMETER const Epilogue& epilogue,
                         Target* target, int64_t image, int first_row, int count) {
  copy_rows(buffer, x, image, first_row);
  for (int filter_block = 0; filter_block < FILTER_BLOCKS; ++filter_block) {
    const int first_filter = filter_block * BLOCK_FILTERS;
    const int filters = FILTERS - first_filter < BLOCK_FILTERS ? FILTERS - first_filter : BLOCK_FILTERS;
    const Weight* packed = block_weights(weights, filter_block);
    for (int channel = 0; channel < CHANNELS; channel += PANEL) {
      const int last = channel + PANEL < CHANNELS ? channel + PANEL : CHANNELS;
      for (int block = 0; block < count * COL_BLOCKS; ++block) {
        const float* rows = buffer + block / COL_BLOCKS * (STRIDE_Y * PITCH) + block % COL_BLOCKS * (BLOCK_COLS * COL_STEP);
        multiply(partial + block * BLOCK, rows, packed, channel, last MULTIPLY_FILTERS);
      }
    }
    for (int block = 0; block < count * COL_BLOCKS; ++block) {
      const int row = first_row + block / COL_BLOCKS, first_col = block % COL_BLOCKS * BLOCK_COLS;
      const int cols = OUT_COLS - first_col < BLOCK_COLS ? OUT_COLS - first_col : BLOCK_COLS;
      for (int i = 0; i < filters; ++i) {
        const int64_t plane = image * FILTERS + first_filter + i;
        const float start = BIAS_START;
        Target* to = target + (static_cast<int64_t>(first_filter + i) * TARGET_ROWS + row % TARGET_ROWS) * OUT_COLS + first_col;
        for (int col = 0; col < cols; ++col) {
          const float sum = partial[block * BLOCK + sum_at(i, col)] + start;
          to[col] = static_cast<Target>(epilogue(sum, plane, static_cast<int64_t>(row) * OUT_COLS + first_col + col));
        }
      }
    }
  }
}
//: pool_row
// One row of a pooled plane from rows that are held in turn; what lies outside of the plane never wins.
static void pool_row(Result* to, const float* plane, int pooled_row) {
  for (int pooled_col = 0; pooled_col < POOLED_COLS; ++pooled_col) {
    float best = -__builtin_inff();
    for (int y = 0; y < POOL_ROWS; ++y) {
      const int row = pooled_row * POOL_STRIDE_Y - POOL_PAD_Y + y * POOL_DILATION_Y;
      if (row < 0 || row >= OUT_ROWS) continue;
      for (int x = 0; x < POOL_COLS; ++x) {
        const int col = pooled_col * POOL_STRIDE_X - POOL_PAD_X + x * POOL_DILATION_X;
        if (col < 0 || col >= OUT_COLS) continue;
        const float value = plane[static_cast<int64_t>(row % TARGET_ROWS) * OUT_COLS + col];
        best = value > best || value != value ? value : best;  // NaN wins, as in PyTorch
      }
    }
    to[pooled_col] = static_cast<Result>(best);
  }
}
//: run_rows
#pragma omp for collapse(2) SCHEDULE
    for (int64_t image = 0; image < IMAGES; ++image) {
      for (int block = 0; block < ROW_BLOCKS; ++block) {
        const int first = block * ROW_BLOCK;
        const int count = OUT_ROWS - first < ROW_BLOCK ? OUT_ROWS - first : ROW_BLOCK;
        PREFETCH_NEXT
        compute_rows(X_DATA, weights, BIAS_ARGUMENT epilogue, target + image * (FILTERS * OUT_ROWS * OUT_COLS), image, first, count);
      }
    }
//: run_pool
#pragma omp for schedule(static)
    for (int64_t plane = 0; plane < static_cast<int64_t>(IMAGES) * FILTERS; ++plane) {
      for (int row = 0; row < POOLED_ROWS; ++row) {
        pool_row(OUT_DATA + (plane * POOLED_ROWS + row) * POOLED_COLS, target + plane * (OUT_ROWS * OUT_COLS), row);
      }
    }
//: run_pooled
#pragma omp for collapse(2) SCHEDULE
    for (int64_t image = 0; image < IMAGES; ++image) {
      for (int segment = 0; segment < SEGMENTS; ++segment) {
        int next = 0;  // the first row that is not computed yet
        for (int pooled = segment * SEGMENT; pooled < POOLED_ROWS && pooled < (segment + 1) * SEGMENT; ++pooled) {
          const int first = pooled * POOL_STRIDE_Y - POOL_PAD_Y;
          const int end = first + (POOL_ROWS - 1) * POOL_DILATION_Y + 1;
          next = next < first ? first : next;
          while (next < end && next < OUT_ROWS) {
            const int count = OUT_ROWS - next < ROW_BLOCK ? OUT_ROWS - next : ROW_BLOCK;
            PREFETCH_NEXT
            compute_rows(X_DATA, weights, BIAS_ARGUMENT epilogue, ring, image, next, count);
            next += count;
          }
          for (int64_t filter = 0; filter < FILTERS; ++filter) {
            pool_row(OUT_DATA + ((image * FILTERS + filter) * POOLED_ROWS + pooled) * POOLED_COLS,
                     ring + filter * (TARGET_ROWS * OUT_COLS), pooled);
          }
        }
      }
    }
