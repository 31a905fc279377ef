//: rows
// Four rows at a time share each line of the right operand, a block of columns after the other.
static void product(const Element* left_data, const Element* right_data, const Epilogue epilogue, Output* out) {
  constexpr int64_t ROWS = 4, BLOCK = 512, ROW_BLOCKS = (M + ROWS - 1) / ROWS;
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < BATCH * ROW_BLOCKS; ++task) {
    const int64_t batch = task / ROW_BLOCKS, first = task % ROW_BLOCKS * ROWS;
    const int64_t height = std::min(ROWS, M - first);
    const Element* const left = left_data + left_offset(batch) + first * LEFT_OUTER;
    const Element* const right = right_data + right_offset(batch);
    for (int64_t start = 0; start < N; start += BLOCK) {
      const int64_t width = std::min(BLOCK, N - start);
      alignas(64) float sums[ROWS][BLOCK] = {};
      for (int64_t k = 0; k < K; ++k) {
        const Element* const line = right + k * RIGHT_K + start * RIGHT_OUTER;
        float factors[ROWS] = {};
        for (int64_t i = 0; i < height; ++i) factors[i] = static_cast<float>(left[i * LEFT_OUTER + k * LEFT_K]);
#pragma omp simd
        for (int64_t j = 0; j < width; ++j) {
          const float value = static_cast<float>(line[j * RIGHT_OUTER]);
          for (int64_t i = 0; i < ROWS; ++i) sums[i][j] += factors[i] * value;
        }
      }
      for (int64_t i = 0; i < height; ++i) finish(epilogue, out, batch * M + first + i, start, width, sums[i]);
    }
  }
}

//: finish
// Writes a run of one line.
static inline void finish(
    const Epilogue& epilogue, Output* __restrict__ out, int64_t row, int64_t start, int64_t width,
    const float* __restrict__ sums) {
  Output* const to = out + row * N + start;
#pragma omp simd
  for (int64_t j = 0; j < width; ++j) to[j] = static_cast<Output>(epilogue(sums[j], row, start + j));
}

//: vectors
typedef float Vector __attribute__((vector_size(64), may_alias));
constexpr int64_t LANES = 16, NR = VECTORS * LANES, MR = 28 / VECTORS;

//: products
// MR x NR sums stay in the vector registers while two packed panels are read once.
static inline __attribute__((always_inline)) void multiply(
    const float* __restrict__ left, const float* __restrict__ right, int64_t depth, float* __restrict__ sums,
    int64_t line) {
  Vector at[MR][VECTORS];
#pragma GCC unroll 32
  for (int64_t i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int64_t v = 0; v < VECTORS; ++v) at[i][v] = *reinterpret_cast<const Vector*>(sums + i * line + v * LANES);
  for (int64_t k = 0; k < depth; ++k) {
    @PREFETCH@
    Vector across[VECTORS];
#pragma GCC unroll 4
    for (int64_t v = 0; v < VECTORS; ++v) across[v] = *reinterpret_cast<const Vector*>(right + k * NR + v * LANES);
#pragma GCC unroll 32
    for (int64_t i = 0; i < MR; ++i) {
      const Vector factor = left[k * MR + i] - Vector{};
#pragma GCC unroll 4
      for (int64_t v = 0; v < VECTORS; ++v) at[i][v] += factor * across[v];
    }
  }
#pragma GCC unroll 32
  for (int64_t i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int64_t v = 0; v < VECTORS; ++v) *reinterpret_cast<Vector*>(sums + i * line + v * LANES) = at[i][v];
}

//: products_pairs
// As pairs of bf16 along k, which one instruction multiplies and adds to fp32 sums.
static inline __attribute__((always_inline)) void multiply(
    const Packed* __restrict__ left, const Packed* __restrict__ right, int64_t depth, float* __restrict__ sums,
    int64_t line) {
  __m512 at[MR][VECTORS];
#pragma GCC unroll 32
  for (int64_t i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int64_t v = 0; v < VECTORS; ++v) at[i][v] = _mm512_load_ps(sums + i * line + v * LANES);
  for (int64_t k = 0; k < depth; ++k) {
    @PREFETCH@
    __m512i across[VECTORS];
#pragma GCC unroll 4
    for (int64_t v = 0; v < VECTORS; ++v) across[v] = _mm512_load_si512(right + k * NR + v * LANES);
#pragma GCC unroll 32
    for (int64_t i = 0; i < MR; ++i) {
      const __m512i factor = _mm512_set1_epi32(static_cast<int>(left[k * MR + i]));
#pragma GCC unroll 4
      for (int64_t v = 0; v < VECTORS; ++v)
        at[i][v] = _mm512_dpbf16_ps(at[i][v], (__m512bh)factor, (__m512bh)across[v]);
    }
  }
#pragma GCC unroll 32
  for (int64_t i = 0; i < MR; ++i)
#pragma GCC unroll 4
    for (int64_t v = 0; v < VECTORS; ++v) _mm512_store_ps(sums + i * line + v * LANES, at[i][v]);
}

//: pack
// Packs WIDTH neighbours of the outer dimension for each step along k, zero outside the matrix.
template <int64_t WIDTH, int64_t OUTER_STRIDE, int64_t K_STRIDE>
static inline void pack(const Element* __restrict__ from, int64_t outer_left, int64_t depth, Packed* __restrict__ to) {
  if (outer_left >= WIDTH) {
    if constexpr (OUTER_STRIDE == 1) {
      for (int64_t k = 0; k < depth; ++k)
#pragma omp simd
        for (int64_t i = 0; i < WIDTH; ++i) to[k * WIDTH + i] = static_cast<float>(from[i + k * K_STRIDE]);
    } else {
      constexpr int64_t RUN = 16;
      for (int64_t start = 0; start < depth; start += RUN)
        for (int64_t i = 0; i < WIDTH; ++i) {
          const int64_t stop = std::min(start + RUN, depth);
          for (int64_t k = start; k < stop; ++k)
            to[k * WIDTH + i] = static_cast<float>(from[i * OUTER_STRIDE + k * K_STRIDE]);
        }
    }
    return;
  }
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t i = 0; i < WIDTH; ++i)
      to[k * WIDTH + i] = i < outer_left ? static_cast<float>(from[i * OUTER_STRIDE + k * K_STRIDE]) : 0.0f;
}

//: pack_pairs
static inline uint32_t bits_of(const Element& value) {
  uint16_t bits;
  __builtin_memcpy(&bits, &value, 2);
  return bits;
}

// Packs WIDTH neighbours of the outer dimension for each two steps along k, zero outside the matrix.
template <int64_t WIDTH, int64_t OUTER_STRIDE, int64_t K_STRIDE>
static inline void pack(const Element* __restrict__ from, int64_t outer_left, int64_t depth, Packed* __restrict__ to) {
  const int64_t width = std::min(WIDTH, outer_left), whole = depth / 2;
  for (int64_t pair = 0; pair < whole; ++pair)
    for (int64_t i = 0; i < WIDTH; ++i) {
      const Element* const at = from + std::min(i, width - 1) * OUTER_STRIDE + pair * 2 * K_STRIDE;
      const uint32_t both = bits_of(at[0]) | bits_of(at[K_STRIDE]) << 16;
      to[pair * WIDTH + i] = i < width ? both : 0;
    }
  if (depth % 2 != 0)
    for (int64_t i = 0; i < WIDTH; ++i)
      to[whole * WIDTH + i] = i < width ? bits_of(from[i * OUTER_STRIDE + (depth - 1) * K_STRIDE]) : 0;
}

//: sizes
constexpr int64_t up(int64_t count, int64_t unit) { return (count + unit - 1) / unit; }
constexpr int64_t DEPTH = std::min<int64_t>(K_BLOCK, up(K, 2) * 2), DEPTHS = up(K, DEPTH);
constexpr int64_t PACKED_K = up(K, PER_PACKED), PACKED_DEPTH = up(DEPTH, PER_PACKED);
constexpr int64_t ROW_PANELS = std::min<int64_t>(TILE_PANELS, up(M, MR));
constexpr int64_t COL_PANELS = std::min<int64_t>(TILE_COL_PANELS, up(N, NR));
constexpr int64_t TM = ROW_PANELS * MR, TN = COL_PANELS * NR;
constexpr int64_t TILE_ROWS = up(M, TM), TILE_COLS = up(N, TN), TILES = BATCH * TILE_ROWS * TILE_COLS;
constexpr int64_t SPLIT_DEPTHS = up(DEPTHS, SPLITS);
constexpr int64_t RIGHT_PANELS = up(N, NR);
constexpr size_t RIGHT_BYTES = sizeof(Packed) * up(RIGHT_BATCHES * RIGHT_PANELS * NR * PACKED_K, 16) * 16;
constexpr size_t LEFT_BYTES = sizeof(Packed) * up(TM * PACKED_DEPTH, 16) * 16;
constexpr size_t SUMS_BYTES = sizeof(float) * TM * TN;

//: tiled
static void product(
    const Element* left_data, const Element* right_data, const Epilogue epilogue, Output* out, char* workspace) {
  Packed* const packed_right = reinterpret_cast<Packed*>(workspace);
#pragma omp parallel
  {
    char* const own = workspace + RIGHT_BYTES + (LEFT_BYTES + @OWN_SUMS@) * omp_get_thread_num();
    Packed* const packed_left = reinterpret_cast<Packed*>(own);
#pragma omp for schedule(static)
    for (int64_t panel = 0; panel < RIGHT_BATCHES * RIGHT_PANELS; ++panel) {
      const int64_t batch = panel / RIGHT_PANELS, col = panel % RIGHT_PANELS * NR;
      pack<NR, RIGHT_OUTER, RIGHT_K>(
          right_data + right_offset(batch) + col * RIGHT_OUTER, N - col, K, packed_right + panel * NR * PACKED_K);
    }
#pragma omp for schedule(@SCHEDULE@)
    for (int64_t task = 0; task < TILES * SPLITS; ++task) {
      const int64_t tile = task / SPLITS, part = task % SPLITS;
      const int64_t batch = tile / (TILE_ROWS * TILE_COLS);
      const int64_t row = tile / TILE_COLS % TILE_ROWS * TM, col = tile % TILE_COLS * TN;
      const Element* const left = left_data + left_offset(batch) + row * LEFT_OUTER;
      const Packed* const right =
          packed_right + ((RIGHT_BATCHES > 1 ? batch * RIGHT_PANELS : 0) + col / NR) * NR * PACKED_K;
      float* const sums = @SUMS@;
      std::fill(sums, sums + TM * TN, 0.0f);
      const int64_t row_panels = std::min(ROW_PANELS, up(M - row, MR));
      const int64_t col_panels = std::min(COL_PANELS, up(N - col, NR));
      for (int64_t block = part * SPLIT_DEPTHS; block < std::min(DEPTHS, (part + 1) * SPLIT_DEPTHS); ++block) {
        const int64_t k = block * DEPTH, depth = std::min(DEPTH, K - k), packed_depth = up(depth, PER_PACKED);
        for (int64_t i = 0; i < row_panels; ++i)
          pack<MR, LEFT_OUTER, LEFT_K>(
              left + i * MR * LEFT_OUTER + k * LEFT_K, M - row - i * MR, depth, packed_left + i * MR * packed_depth);
        for (int64_t j = 0; j < col_panels; ++j)
          for (int64_t i = 0; i < row_panels; ++i)
            multiply(
                packed_left + i * MR * packed_depth, right + (j * PACKED_K + k / PER_PACKED) * NR, packed_depth,
                sums + i * MR * TN + j * NR, TN);
      }
      @FINISH@
    }
    @ADD@
  }
}

//: finish_tile
      for (int64_t i = 0; i < std::min(TM, M - row); ++i)
        finish(epilogue, out, batch * M + row + i, col, std::min(TN, N - col), sums + i * TN);

//: add_parts
#pragma omp for schedule(static)
    for (int64_t line = 0; line < BATCH * M * TILE_COLS; ++line) {
      const int64_t row = line / TILE_COLS, col = line % TILE_COLS * TN;
      const int64_t tile = (row / M * TILE_ROWS + row % M / TM) * TILE_COLS + line % TILE_COLS;
      float* const total = parts + tile * SPLITS * TM * TN + row % M % TM * TN;
      for (int64_t part = 1; part < SPLITS; ++part)
#pragma omp simd
        for (int64_t j = 0; j < TN; ++j) total[j] += total[part * TM * TN + j];
      finish(epilogue, out, row, col, std::min(TN, N - col), total);
    }
