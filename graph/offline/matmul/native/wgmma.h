//: repack
// Copies an operand into a matrix whose lines lie along k at an aligned pitch, through tiles that keep both the reads
// and the writes coalesced.
template <bool IS_LEFT, int64_t OUTER_STRIDE, int64_t K_STRIDE, int OUTER>
__global__ void __launch_bounds__(256) repack(const Element* __restrict__ from, Element* __restrict__ to) {
  const int batch = static_cast<int>(blockIdx.z);
  from += IS_LEFT ? left_offset(batch) : right_offset(batch);
  to += static_cast<int64_t>(batch) * OUTER * PACKED_PITCH;
  __shared__ Element tile[32][33];
  const int x = static_cast<int>(threadIdx.x) % 32, y = static_cast<int>(threadIdx.x) / 32;
  const int k = static_cast<int>(blockIdx.x) * 32;
  for (int outer = static_cast<int>(blockIdx.y) * 32; outer < OUTER; outer += static_cast<int>(gridDim.y) * 32) {
#pragma unroll
    for (int step = 0; step < 32; step += 8) {
      const int along = OUTER_STRIDE == 1 ? x : y + step, across = OUTER_STRIDE == 1 ? y + step : x;
      if (outer + along < OUTER && k + across < K)
        tile[along][across] = from[(outer + along) * OUTER_STRIDE + (k + across) * K_STRIDE];
    }
    __syncthreads();
#pragma unroll
    for (int step = 0; step < 32; step += 8)
      if (outer + y + step < OUTER && k + x < K)
        to[static_cast<int64_t>(outer + y + step) * PACKED_PITCH + k + x] = tile[y + step][x];
    __syncthreads();
  }
}

//: barriers
__device__ __forceinline__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void init_barrier(uint64_t* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(arrivals) : "memory");
}

__device__ __forceinline__ void expect_bytes(uint64_t* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void wait_for(uint64_t* barrier, unsigned parity) {
  unsigned is_done;
  do {
    asm volatile(
        "{\n.reg .pred done;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
        "selp.u32 %0, 1, 0, done;\n}"
        : "=r"(is_done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
  } while (is_done == 0);
}

__device__ __forceinline__ void copy_box(
    unsigned char* to, const CUtensorMap* map, uint64_t* barrier, int inner, int line, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(inner), "r"(line), "r"(batch)
      : "memory");
}

//: cluster_barriers
// Both blocks of a cluster hear that a warp has read a stage, since either may write into both.
__device__ __forceinline__ void release(uint64_t* barrier) {
#pragma unroll
  for (int rank = 0; rank < CLUSTER; ++rank)
    asm volatile(
        "{\n.reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}"
        ::"r"(shared_address(barrier)), "r"(rank)
        : "memory");
}

__device__ __forceinline__ void meet() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

__device__ __forceinline__ int cluster_rank() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}

// Copies a box to the same place in both blocks, and tells both.
__device__ __forceinline__ void copy_box_to_all(
    unsigned char* to, const CUtensorMap* map, uint64_t* barrier, int inner, int line, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%3, %4, %5}], [%2], %6;"
      ::"r"(shared_address(to)), "l"(map), "r"(shared_address(barrier)), "r"(inner), "r"(line), "r"(batch),
      "h"(static_cast<uint16_t>((1 << CLUSTER) - 1))
      : "memory");
}

// Each block copies its share of an operand that both multiply.
template <bool ALONG_K, int OUTER>
__device__ __forceinline__ void copy_shared_operand(
    unsigned char* to, const CUtensorMap* map, uint64_t* barrier, int outer, int k, int batch, int rank) {
  if constexpr (ALONG_K) {
    constexpr int SHARE = OUTER / CLUSTER;
    copy_box_to_all(to + rank * SHARE * LINE_BYTES, map, barrier, k, outer + rank * SHARE, batch);
  } else {
    for (int group = rank; group < OUTER / BK; group += CLUSTER)
      copy_box_to_all(to + group * GROUP_BYTES, map, barrier, outer + group * BK, k, batch);
  }
}

//: single_barriers
__device__ __forceinline__ void release(uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ __forceinline__ void meet() { __syncthreads(); }
__device__ __forceinline__ int cluster_rank() { return 0; }

template <bool ALONG_K, int OUTER>
__device__ __forceinline__ void copy_shared_operand(
    unsigned char* to, const CUtensorMap* map, uint64_t* barrier, int outer, int k, int batch, int) {
  copy_operand<ALONG_K, OUTER>(to, map, barrier, outer, k, batch);
}

//: tensor_maps
// Describes an operand as batches of lines: `inner` elements of a line are adjacent, lines lie `pitch` elements apart.
// Boxes of 128 bytes x `box_lines` lie in shared memory with the 128-byte swizzle that wgmma reads.
static CUtensorMap tensor_map(
    const Element* base, int64_t inner, int64_t lines, int64_t batches, int64_t pitch, int64_t batch_stride,
    int box_lines) {
  static const auto encode = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult status{};
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &status);
    return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found);
  }();
  const cuuint64_t extents[3] = {
      static_cast<cuuint64_t>(inner), static_cast<cuuint64_t>(lines), static_cast<cuuint64_t>(batches)};
  const cuuint64_t strides[2] = {pitch * sizeof(Element), batch_stride * sizeof(Element)};
  const cuuint32_t box[3] = {128 / sizeof(Element), static_cast<cuuint32_t>(box_lines), 1};
  const cuuint32_t steps[3] = {1, 1, 1};
  CUtensorMap map{};
  if (encode != nullptr)
    encode(&map, TENSOR_TYPE, 3, const_cast<Element*>(base), extents, strides, box, steps,
           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

//: warpgroup
// A matrix in shared memory with the 128-byte swizzle: `group` is the distance of 64 outer elements where these are
// adjacent (not along k); 1024 bytes is the distance of 8 lines.
__device__ __forceinline__ uint64_t descriptor(const unsigned char* start, int group) {
  const uint64_t address = (shared_address(start) & 0x3FFFF) >> 4;
  return address | static_cast<uint64_t>(group >> 4) << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62;
}

__device__ __forceinline__ void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

template <int PENDING>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Sums are complete only after a wait, which the compiler does not know of: nothing that reads them moves before this.
template <int COUNT>
__device__ __forceinline__ void settle(float (&sums)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

//: wgmma_kernel
// The product as the tensor cores see it: FIRST's outer dimension lies over their rows, SECOND's over their columns.
constexpr int LINE_BYTES = 128, BK = LINE_BYTES / sizeof(Element);
constexpr int BM = CONSUMERS * BLOCKS * 64;
constexpr int FIRST_BYTES = BM * LINE_BYTES, SECOND_BYTES = BN * LINE_BYTES;
constexpr int STAGE_BYTES = FIRST_BYTES + SECOND_BYTES;
constexpr int FITTING = (SHARED_LIMIT - 1024) / STAGE_BYTES;
constexpr int STAGES = MAX_STAGES < FITTING ? MAX_STAGES : FITTING;
static_assert(STAGES > 1, "a panel is copied while another is multiplied");
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES + 1024;
constexpr int THREADS = (CONSUMERS + 1) * 128;
constexpr bool TRADES_REGISTERS = CONSUMERS > 1;  // with one consumer every thread may have 255 as it is
// Blocks of a cluster take tiles below each other, so they share SECOND's panels.
constexpr int TILE_ROWS = (FIRST_OUTER + BM * CLUSTER - 1) / (BM * CLUSTER), TILE_COLS = (SECOND_OUTER + BN - 1) / BN;
constexpr int TILES = BATCH * TILE_ROWS * TILE_COLS, STEPS = (K + BK - 1) / BK;
constexpr int GROUP_BYTES = BK * LINE_BYTES;  // BK lines of one group of BK outer elements

struct Ring {
  int stage = 0;
  unsigned phase = 0;

  __device__ __forceinline__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
  }
};

template <bool ALONG_K, int OUTER>
__device__ __forceinline__ void copy_operand(
    unsigned char* to, const CUtensorMap* map, uint64_t* barrier, int outer, int k, int batch) {
  if constexpr (ALONG_K) {
    copy_box(to, map, barrier, k, outer, batch);
  } else {
#pragma unroll
    for (int group = 0; group < OUTER / BK; ++group)
      copy_box(to + group * GROUP_BYTES, map, barrier, outer + group * BK, k, batch);
  }
}

//: wgmma_produce
// One thread asks for panels as stages become free.
__device__ __forceinline__ void produce(
    unsigned char* shared, uint64_t* full, uint64_t* empty, const CUtensorMap* first, const CUtensorMap* second) {
  Ring ring;
  const int rank = cluster_rank();
  for (int index = static_cast<int>(blockIdx.x) / CLUSTER; index < TILES; index += static_cast<int>(gridDim.x) / CLUSTER) {
    const Tile tile = tile_at(index, TILE_ROWS, TILE_COLS);
    for (int step = 0; step < STEPS; ++step, ring.advance()) {
      uint64_t* const barrier = full + ring.stage;
      wait_for(empty + ring.stage, ring.phase ^ 1);
      expect_bytes(barrier, STAGE_BYTES);
      unsigned char* const stage = shared + ring.stage * STAGE_BYTES;
      copy_operand<FIRST_ALONG_K, BM>(
          stage, first, barrier, (tile.row * CLUSTER + rank) * BM, step * BK, FIRST_BATCHED ? tile.batch : 0);
      copy_shared_operand<SECOND_ALONG_K, BN>(
          stage + FIRST_BYTES, second, barrier, tile.col * BN, step * BK, SECOND_BATCHED ? tile.batch : 0, rank);
    }
  }
}

using Sums = float[BLOCKS][BN / 2];

//: wgmma_descriptors
// Both operands are read from shared memory by descriptors; one group of products stays in flight.
__device__ __forceinline__ void consume(
    Sums& sums, unsigned char* shared, uint64_t* full, uint64_t* empty, Ring& ring, int consumer) {
  constexpr int FIRST_STEP = FIRST_ALONG_K ? 32 : LINE_BYTES * 32 / static_cast<int>(sizeof(Element));
  constexpr int SECOND_STEP = SECOND_ALONG_K ? 32 : LINE_BYTES * 32 / static_cast<int>(sizeof(Element));
  for (int step = 0; step < STEPS; ++step) {
    wait_for(full + ring.stage, ring.phase);
    const unsigned char* const first = shared + ring.stage * STAGE_BYTES + consumer * BLOCKS * 64 * LINE_BYTES;
    const unsigned char* const second = shared + ring.stage * STAGE_BYTES + FIRST_BYTES;
    begin_products();
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int block = 0; block < BLOCKS; ++block)
        multiply<FIRST_ALONG_K, SECOND_ALONG_K>(
            sums[block], descriptor(first + block * 64 * LINE_BYTES + k * FIRST_STEP, GROUP_BYTES),
            descriptor(second + k * SECOND_STEP, GROUP_BYTES), (step | k) != 0);
    commit_products();
    wait_products<1>();
    // Each warp tells for itself that the products before these no longer read their stage.
    if (step > 0 && threadIdx.x % 32 == 0) release(empty + (ring.stage == 0 ? STAGES - 1 : ring.stage - 1));
    ring.advance();
  }
  wait_products<0>();
#pragma unroll
  for (int block = 0; block < BLOCKS; ++block) settle(sums[block]);
  if (threadIdx.x % 32 == 0) release(empty + (ring.stage == 0 ? STAGES - 1 : ring.stage - 1));
}

//: wgmma_each
template <class Take>
__device__ __forceinline__ void each(const Sums& sums, int consumer, Take take) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
#pragma unroll
  for (int block = 0; block < BLOCKS; ++block)
#pragma unroll
    for (int j = 0; j < BN / 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float run[2] = {sums[block][j * 4 + half * 2], sums[block][j * 4 + half * 2 + 1]};
        take((consumer * BLOCKS + block) * 64 + warp * 16 + lane / 4 + half * 8, j * 8 + lane % 4 * 2, run);
      }
}

//: wgmma_each_wide
// Neighbouring lanes exchange halves, so that each writes four neighbours of one row.
template <class Take>
__device__ __forceinline__ void each(const Sums& sums, int consumer, Take take) {
  const int t = static_cast<int>(threadIdx.x) % 4, lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
  for (int block = 0; block < BLOCKS; ++block)
#pragma unroll
    for (int j = 0; j < BN / 8; j += 2)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float* const pair = sums[block] + j * 4 + half * 2;
        float run[4];
        exchange(run, pair[0], pair[1], pair[4], pair[5]);
        take((consumer * BLOCKS + block) * 64 + row + half * 8, (j + t % 2) * 8 + t / 2 * 4, run);
      }
}

//: wgmma_registers
// FIRST's outer elements are adjacent in memory, which tf32 descriptors do not read: each thread loads four of them at
// once and hands them to the tensor cores in registers, as rows g and g + 8 of two blocks. Lane groups take the
// 16-byte chunks of a line in an order that keeps quarters of a warp on different banks.
__device__ __forceinline__ int first_chunk() {
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  return g % 2 * 4 + g / 2;
}

__device__ __forceinline__ unsigned rounded(float value) {
  unsigned result;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
}

__device__ __forceinline__ void consume(
    Sums& sums, unsigned char* shared, uint64_t* full, uint64_t* empty, Ring& ring, int consumer) {
  static_assert(BLOCKS == 2, "two blocks take the four elements of a load");
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4, t = static_cast<int>(threadIdx.x) % 4;
  for (int step = 0; step < STEPS; ++step) {
    wait_for(full + ring.stage, ring.phase);
    const unsigned char* const first = shared + ring.stage * STAGE_BYTES + (consumer * 4 + warp) * GROUP_BYTES;
    const unsigned char* const second = shared + ring.stage * STAGE_BYTES + FIRST_BYTES;
    unsigned parts[4][2][4];
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int later = 0; later < 2; ++later) {
        const int in_group = t + later * 4;  // line modulo 8, which the swizzle mixes into the chunk
        const float4 four = *reinterpret_cast<const float4*>(
            first + (k * 8 + in_group) * LINE_BYTES + (first_chunk() ^ in_group) * 16);
        parts[k][0][later * 2] = rounded(four.x);
        parts[k][0][later * 2 + 1] = rounded(four.y);
        parts[k][1][later * 2] = rounded(four.z);
        parts[k][1][later * 2 + 1] = rounded(four.w);
      }
    begin_products();
#pragma unroll
    for (int k = 0; k < 4; ++k)
#pragma unroll
      for (int block = 0; block < 2; ++block)
        multiply(sums[block], parts[k][block], descriptor(second + k * 32, GROUP_BYTES), (step | k) != 0);
    commit_products();
    wait_products<0>();
    if (threadIdx.x % 32 == 0) release(empty + ring.stage);
    ring.advance();
  }
  settle(sums[0]);
  settle(sums[1]);
}

template <class Take>
__device__ __forceinline__ void each(const Sums& sums, int consumer, Take take) {
  const int t = static_cast<int>(threadIdx.x) % 4, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int row = consumer * 128 + warp * 32 + first_chunk() * 4;
#pragma unroll
  for (int j = 0; j < BN / 8; ++j)
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const float run[4] = {
          sums[0][j * 4 + side], sums[0][j * 4 + 2 + side], sums[1][j * 4 + side], sums[1][j * 4 + 2 + side]};
      take(row, j * 8 + t * 2 + side, run);
    }
}

//: wgmma_entry
// One warpgroup copies, CONSUMERS warpgroups multiply; full and empty stages are announced through barriers.
__global__ void @CLUSTER@__launch_bounds__(THREADS, 1) matmul(
    const __grid_constant__ CUtensorMap first, const __grid_constant__ CUtensorMap second, Epilogue epilogue,
    Output* __restrict__ out) {
  extern __shared__ unsigned char memory[];
  __shared__ uint64_t full[STAGES], empty[STAGES];
  unsigned char* const shared = memory + (1024 - shared_address(memory) % 1024) % 1024;
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < STAGES; ++stage) {
      init_barrier(full + stage, 1);
      init_barrier(empty + stage, CONSUMERS * 4 * CLUSTER);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  meet();
  if (threadIdx.x < 128) {
    if constexpr (TRADES_REGISTERS) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) produce(shared, full, empty, &first, &second);
  } else {
    if constexpr (TRADES_REGISTERS) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int consumer = static_cast<int>(threadIdx.x) / 128 - 1;
    Ring ring;
    const int rank = cluster_rank();
    for (int index = static_cast<int>(blockIdx.x) / CLUSTER; index < TILES;
         index += static_cast<int>(gridDim.x) / CLUSTER) {
      const Tile tile = tile_at(index, TILE_ROWS, TILE_COLS);
      Sums sums;
      consume(sums, shared, full, empty, ring, consumer);
      each(sums, consumer, [&](int row, int col, const auto& values) {
        place(epilogue, out, tile.batch, (tile.row * CLUSTER + rank) * BM + row, tile.col * BN + col, values);
      });
    }
  }
@END@}

//: place_swapped
// The tensor cores' rows are the output's columns.
template <int COUNT>
__device__ __forceinline__ void place(
    const Epilogue& epilogue, Output* out, int batch, int first, int second, const float (&sums)[COUNT]) {
  store(epilogue, out, batch, second, first, sums);
}

//: place_lines
template <int COUNT>
__device__ __forceinline__ void place(
    const Epilogue& epilogue, Output* out, int batch, int first, int second, const float (&sums)[COUNT]) {
  store(epilogue, out, batch, first, second, sums);
}

//: place_rows
// The neighbours are rows of the output.
template <int COUNT>
__device__ __forceinline__ void place(
    const Epilogue& epilogue, Output* out, int batch, int first, int second, const float (&sums)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    const float one[1] = {sums[i]};
    store(epilogue, out, batch, first + i, second, one);
  }
}
