//: tiles
// Blocks that run together read the same panels: they walk GROUP rows of tiles before the next column.
struct Tile {
  int batch, row, col;
};

__device__ __forceinline__ Tile tile_at(int index, int tile_rows, int tile_cols) {
  const int per_batch = tile_rows * tile_cols;
  const int batch = index / per_batch;
  const int inside = index % per_batch;
  const int group = inside / (GROUP * tile_cols);
  const int first = group * GROUP;
  const int height = min(GROUP, tile_rows - first);
  const int rest = inside - first * tile_cols;
  return {batch, first + rest % height, rest / height};
}

//: store
__device__ __forceinline__ void convert(float& to, float value) { to = value; }
#ifdef HALF_OUTPUT
__device__ __forceinline__ void convert(Output& to, float value) { to = static_cast<Output>(value); }
#endif

template <int COUNT>
struct alignas(COUNT * sizeof(Output)) Run {
  Output at[COUNT];
};

// Writes COUNT neighbours of one row; `col` is a multiple of COUNT.
template <int COUNT>
__device__ __forceinline__ void store(
    const Epilogue& epilogue, Output* __restrict__ out, int batch, int row, int col, const float (&sums)[COUNT]) {
  if (row >= M || col >= N) return;
  const Index line = static_cast<Index>(batch) * M + row;
  if constexpr (N % COUNT == 0) {
    Run<COUNT> run;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) convert(run.at[i], epilogue(sums[i], line, col + i));
    *reinterpret_cast<Run<COUNT>*>(out + line * N + col) = run;
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
      if (col + i < N) convert(out[line * N + col + i], epilogue(sums[i], line, col + i));
  }
}

//: panels
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void commit_copies() {
  if constexpr (ASYNC) asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING>
__device__ __forceinline__ void wait_copies() {
  if constexpr (ASYNC) asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Copies 16 bytes, of which the first `valid` elements exist; the others become zero.
__device__ __forceinline__ void copy_chunk(Shared* to, const Element* from, int valid) {
  if constexpr (ASYNC) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 ::"r"(shared_address(to)), "l"(from), "r"(valid * static_cast<int>(sizeof(Element)))
                 : "memory");
  } else if (valid == CHUNK) {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
  } else {
#pragma unroll
    for (int i = 0; i < CHUNK; ++i) to[i] = i < valid ? static_cast<Shared>(from[i]) : Shared(0.0f);
  }
}

// Copies one element, or writes zero where none exists.
__device__ __forceinline__ void copy_element(Shared* to, const Element* from, bool exists) {
  if constexpr (ASYNC && sizeof(Element) == 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 ::"r"(shared_address(to)), "l"(from), "r"(exists ? 4 : 0)
                 : "memory");
  } else {
    *to = exists ? static_cast<Shared>(*from) : Shared(0.0f);
  }
}

// Copies OUTER x BK elements, zero outside the matrix. In shared memory neighbours along k (ALONG_K) or along the
// outer dimension are adjacent; PITCH is the length of such a line with its padding against bank conflicts.
template <int OUTER, bool ALONG_K, int PITCH, bool CHUNKED, int64_t OUTER_STRIDE, int64_t K_STRIDE>
__device__ __forceinline__ void load_panel(Shared* to, const Element* base, int outer_left, int k_left) {
  if constexpr (CHUNKED) {
    constexpr int PER_LINE = (ALONG_K ? BK : OUTER) / CHUNK;
    constexpr int TOTAL = OUTER * BK / CHUNK;
#pragma unroll
    for (int item = static_cast<int>(threadIdx.x), step = 0; step < (TOTAL + THREADS - 1) / THREADS;
         ++step, item += THREADS) {
      if (TOTAL % THREADS != 0 && item >= TOTAL) break;
      const int line = item / PER_LINE, start = item % PER_LINE * CHUNK;
      const int lines_left = ALONG_K ? outer_left : k_left;
      const int left = (ALONG_K ? k_left : outer_left) - start;
      const int valid = line < lines_left ? max(0, min(CHUNK, left)) : 0;
      const int64_t offset = ALONG_K ? line * OUTER_STRIDE + start : line * K_STRIDE + start;
      copy_chunk(to + line * PITCH + start, valid ? base + offset : base, valid);
    }
  } else {
    constexpr bool K_FIRST = K_STRIDE == 1;
#pragma unroll 4
    for (int item = static_cast<int>(threadIdx.x); item < OUTER * BK; item += THREADS) {
      const int outer = K_FIRST ? item / BK : item % OUTER, k = K_FIRST ? item % BK : item / OUTER;
      const bool exists = outer < outer_left && k < k_left;
      const int64_t offset = outer * OUTER_STRIDE + k * K_STRIDE;
      copy_element(to + (ALONG_K ? outer * PITCH + k : k * PITCH + outer), exists ? base + offset : base, exists);
    }
  }
}

constexpr int LEFT_PITCH = LEFT_ALONG_K ? BK + PAD_K : BM + PAD_OUTER;
constexpr int RIGHT_PITCH = RIGHT_ALONG_K ? BK + PAD_K : BN + PAD_OUTER;
constexpr int LEFT_SIZE = LEFT_ALONG_K ? BM * LEFT_PITCH : BK * LEFT_PITCH;
constexpr int RIGHT_SIZE = RIGHT_ALONG_K ? BN * RIGHT_PITCH : BK * RIGHT_PITCH;
constexpr int STAGE_BYTES = (LEFT_SIZE + RIGHT_SIZE) * static_cast<int>(sizeof(Shared));
constexpr int FITTING = SHARED_LIMIT / STAGE_BYTES;
constexpr int STAGES = MAX_STAGES < FITTING ? MAX_STAGES : FITTING;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES;
static_assert(STAGES >= 2, "no two panels fit into shared memory: a smaller BN or BK");
constexpr int TILE_ROWS = (M + BM - 1) / BM, TILE_COLS = (N + BN - 1) / BN, TILES_K = (K + BK - 1) / BK;
constexpr int STEPS = (TILES_K + SPLITS - 1) / SPLITS, TILES = BATCH * TILE_ROWS * TILE_COLS;

__device__ __forceinline__ void load_stage(
    Shared* stage, const Element* left, const Element* right, const Tile& tile, int step) {
  const int row = tile.row * BM, col = tile.col * BN, k = step * BK;
  load_panel<BM, LEFT_ALONG_K, LEFT_PITCH, LEFT_CHUNKED, LEFT_OUTER, LEFT_K>(
      stage, left + row * LEFT_OUTER + k * LEFT_K, M - row, K - k);
  load_panel<BN, RIGHT_ALONG_K, RIGHT_PITCH, RIGHT_CHUNKED, RIGHT_OUTER, RIGHT_K>(
      stage + LEFT_SIZE, right + col * RIGHT_OUTER + k * RIGHT_K, N - col, K - k);
}

//: kernel
// Copies of STAGES - 1 later panels are under way while one is multiplied.
__global__ void __launch_bounds__(THREADS) matmul(
    const Element* __restrict__ left_data, const Element* __restrict__ right_data, Epilogue epilogue,
    Output* __restrict__ out, [[maybe_unused]] float* __restrict__ partial) {
  extern __shared__ __align__(128) unsigned char memory[];
  Shared* const shared = reinterpret_cast<Shared*>(memory);
  const int first = static_cast<int>(blockIdx.y) * STEPS;
  const int steps = min(STEPS, TILES_K - first);
  for (int index = static_cast<int>(blockIdx.x); index < TILES; index += static_cast<int>(gridDim.x)) {
    const Tile tile = tile_at(index, TILE_ROWS, TILE_COLS);
    const Element* const left = left_data + left_offset(tile.batch);
    const Element* const right = right_data + right_offset(tile.batch);
    Sums sums;
#pragma unroll
    for (int step = 0; step < STAGES - 1; ++step) {
      if (step < steps) load_stage(shared + step * (LEFT_SIZE + RIGHT_SIZE), left, right, tile, first + step);
      commit_copies();
    }
    for (int step = 0; step < steps; ++step) {
      wait_copies<STAGES - 2>();
      __syncthreads();
      const int ahead = step + STAGES - 1;
      if (ahead < steps)
        load_stage(shared + ahead % STAGES * (LEFT_SIZE + RIGHT_SIZE), left, right, tile, first + ahead);
      commit_copies();
      const Shared* const stage = shared + step % STAGES * (LEFT_SIZE + RIGHT_SIZE);
      sums.multiply(stage, stage + LEFT_SIZE);
    }
    if constexpr (SPLITS > 1) {
      sums.each([&](int row, int col, const auto& values) {
        keep(partial + static_cast<int64_t>(blockIdx.y) * BATCH * M * N, tile, row, col, values);
      });
    } else {
      sums.each([&](int row, int col, const auto& values) {
        store(epilogue, out, tile.batch, tile.row * BM + row, tile.col * BN + col, values);
      });
    }
    wait_copies<0>();
    __syncthreads();
  }
}

//: keep
// Sums of one part of k; a second kernel adds the parts.
template <int COUNT>
__device__ __forceinline__ void keep(float* partial, const Tile& tile, int row, int col, const float (&sums)[COUNT]) {
  row += tile.row * BM;
  col += tile.col * BN;
#pragma unroll
  for (int i = 0; i < COUNT; ++i)
    if (row < M && col + i < N) partial[(static_cast<int64_t>(tile.batch) * M + row) * N + col + i] = sums[i];
}

//: add_parts
__global__ void __launch_bounds__(256) add_parts(
    const float* __restrict__ partial, Epilogue epilogue, Output* __restrict__ out) {
  constexpr int64_t TOTAL = static_cast<int64_t>(BATCH) * M * N;
  for (int64_t at = static_cast<int64_t>(blockIdx.x) * 256 + threadIdx.x; at < TOTAL; at += gridDim.x * 256LL) {
    float sum = 0.0f;
#pragma unroll
    for (int part = 0; part < SPLITS; ++part) sum += partial[part * TOTAL + at];
    convert(out[at], epilogue(sum, static_cast<Index>(at / N), static_cast<Index>(at % N)));
  }
}

//: registers
// Each thread keeps 8 x 8 sums, in quarters of 4 x 4 that lie half a tile apart: 16-byte reads without conflicts.
struct Sums {
  static constexpr int ACROSS = BN / 8;
  float at[8][8] = {};
  int x = static_cast<int>(threadIdx.x) % ACROSS * 4, y = static_cast<int>(threadIdx.x) / ACROSS * 4;

  __device__ __forceinline__ void multiply(const Shared* left, const Shared* right) {
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      float a[8], b[8];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        *reinterpret_cast<float4*>(a + half * 4) =
            *reinterpret_cast<const float4*>(left + k * LEFT_PITCH + y + half * (BM / 2));
        *reinterpret_cast<float4*>(b + half * 4) =
            *reinterpret_cast<const float4*>(right + k * RIGHT_PITCH + x + half * (BN / 2));
      }
#pragma unroll
      for (int i = 0; i < 8; ++i)
#pragma unroll
        for (int j = 0; j < 8; ++j) at[i][j] = fmaf(a[i], b[j], at[i][j]);
    }
  }

  template <class Take>
  __device__ __forceinline__ void each(Take take) const {
#pragma unroll
    for (int i = 0; i < 8; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float run[4] = {at[i][half * 4], at[i][half * 4 + 1], at[i][half * 4 + 2], at[i][half * 4 + 3]};
        take(y + i % 4 + i / 4 * (BM / 2), x + half * (BN / 2), run);
      }
  }
};

//: fragments
// Four 8 x 16-byte matrices, one address for each lane; `TRANSPOSED` turns matrices of 2-byte elements.
template <bool TRANSPOSED>
__device__ __forceinline__ void load_matrices(unsigned (&to)[4], const Shared* from) {
  if constexpr (TRANSPOSED) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(from)));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(from)));
  }
}

__device__ __forceinline__ unsigned rounded(unsigned bits) {
  unsigned result = bits;
  if constexpr (sizeof(Shared) == 4) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(__uint_as_float(bits)));
  return result;
}

// 16 rows x DEPTH of the left panel: rows g and g + 8, k in 16-byte chunks 0 and 1 (g = lane / 4).
__device__ __forceinline__ void load_left(unsigned (&to)[4], const Shared* panel, int row, int k) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (LEFT_ALONG_K) {
    load_matrices<false>(to, panel + (row + lane % 16) * LEFT_PITCH + k + lane / 16 * CHUNK);
  } else if constexpr (sizeof(Shared) == 2) {
    load_matrices<true>(to, panel + (k + lane % 8 + lane / 16 * 8) * LEFT_PITCH + row + lane / 8 % 2 * 8);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      to[i] = __float_as_uint(panel[(k + lane % 4 + i / 2 * 4) * LEFT_PITCH + row + lane / 4 + i % 2 * 8]);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = rounded(to[i]);
}

// Two neighbouring fragments of DEPTH x 8 columns of the right panel.
__device__ __forceinline__ void load_right(unsigned (&to)[4], const Shared* panel, int col, int k) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (RIGHT_ALONG_K) {
    load_matrices<false>(to, panel + (col + lane % 8 + lane / 16 * 8) * RIGHT_PITCH + k + lane / 8 % 2 * CHUNK);
  } else if constexpr (sizeof(Shared) == 2) {
    load_matrices<true>(to, panel + (k + lane % 16) * RIGHT_PITCH + col + lane / 16 * 8);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      to[i] = __float_as_uint(panel[(k + lane % 4 + i % 2 * 4) * RIGHT_PITCH + col + lane / 4 + i / 2 * 8]);
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) to[i] = rounded(to[i]);
}

__device__ __forceinline__ void multiply_fragments(float (&to)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.@SHAPE@ {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
               : "+f"(to[0]), "+f"(to[1]), "+f"(to[2]), "+f"(to[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// Each warp keeps WM x WN sums as fragments of 16 x 8.
struct Sums {
  static constexpr int HIGH = WM / 16, WIDE = WN / 8, DEPTH = 2 * CHUNK;
  float at[HIGH][WIDE][4] = {};
  int row = static_cast<int>(threadIdx.x) / 32 / (BN / WN) * WM;
  int col = static_cast<int>(threadIdx.x) / 32 % (BN / WN) * WN;

  __device__ __forceinline__ void multiply(const Shared* left, const Shared* right) {
#pragma unroll
    for (int k = 0; k < BK; k += DEPTH) {
      unsigned a[HIGH][4], b[WIDE / 2][4];
#pragma unroll
      for (int i = 0; i < HIGH; ++i) load_left(a[i], left, row + i * 16, k);
#pragma unroll
      for (int j = 0; j < WIDE / 2; ++j) load_right(b[j], right, col + j * 16, k);
#pragma unroll
      for (int i = 0; i < HIGH; ++i)
#pragma unroll
        for (int j = 0; j < WIDE; ++j) multiply_fragments(at[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }

@EACH@
};

//: fragments_each
  template <class Take>
  __device__ __forceinline__ void each(Take take) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < HIGH; ++i)
#pragma unroll
      for (int j = 0; j < WIDE; ++j)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float run[2] = {at[i][j][half * 2], at[i][j][half * 2 + 1]};
          take(row + i * 16 + lane / 4 + half * 8, col + j * 8 + lane % 4 * 2, run);
        }
  }

//: fragments_each_wide
  // Neighbouring lanes exchange halves, so that each writes four neighbours of one row.
  template <class Take>
  __device__ __forceinline__ void each(Take take) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, t = lane % 4;
#pragma unroll
    for (int i = 0; i < HIGH; ++i)
#pragma unroll
      for (int j = 0; j < WIDE; j += 2)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float run[4];
          exchange(run, at[i][j][half * 2], at[i][j][half * 2 + 1], at[i][j + 1][half * 2], at[i][j + 1][half * 2 + 1]);
          take(row + i * 16 + lane / 4 + half * 8, col + (j + t % 2) * 8 + t / 2 * 4, run);
        }
  }

//: exchange
// Of two groups of eight columns an even lane takes four neighbours of the first, an odd one of the second.
__device__ __forceinline__ void exchange(float (&run)[4], float a0, float a1, float b0, float b1) {
  const bool is_odd = threadIdx.x % 2 != 0;
  const float other0 = __shfl_xor_sync(~0U, is_odd ? a0 : b0, 1);
  const float other1 = __shfl_xor_sync(~0U, is_odd ? a1 : b1, 1);
  run[0] = is_odd ? other0 : a0;
  run[1] = is_odd ? other1 : a1;
  run[2] = is_odd ? b0 : other0;
  run[3] = is_odd ? b1 : other1;
}
