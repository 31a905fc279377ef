// Softmax with a row split over a cluster of blocks: every element is read from memory once and stays in shared memory
// until its row's maximum and sum are known, which the blocks exchange through one another's shared memory.
#include "problem.h"

namespace {

constexpr int64_t ROWS = X_SHAPE_0;
constexpr int64_t COLS = X_SHAPE_1;
constexpr int BLOCKS = 4;     // tune: BLOCKS = 2 | 4 | 8
constexpr int THREADS = 512;  // tune: THREADS = 256 | 512 | 1024
constexpr int WARPS = THREADS / 32;
constexpr int WIDTH = COLS % 4 == 0 ? 4 : 1;  // elements of one load
constexpr int64_t GROUPS = COLS / WIDTH;
constexpr int PART_GROUPS = static_cast<int>((GROUPS + BLOCKS - 1) / BLOCKS);
constexpr int PART = PART_GROUPS * WIDTH;  // elements of a row that one block holds
constexpr int SHARED_BYTES = PART * static_cast<int>(sizeof(float));

static_assert(SHARED_BYTES <= 220 * 1024, "a part of a row exceeds shared memory");

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

__device__ __forceinline__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Writes a float to the same variable of block `rank` of this cluster.
__device__ __forceinline__ void store_remote(float* variable, unsigned rank, float value) {
  const unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(variable));
  unsigned remote;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(own), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(remote), "f"(value) : "memory");
}

__device__ __forceinline__ void copy(float* to, const float* from) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(to));
  if constexpr (WIDTH == 4) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
  }
}

__global__ void __launch_bounds__(THREADS) __cluster_dims__(BLOCKS, 1, 1)
    softmax(const float* __restrict__ x, float* __restrict__ out) {
  extern __shared__ __align__(16) float part[];
  __shared__ Tally tallies[WARPS];
  __shared__ Tally of_blocks[BLOCKS];

  const unsigned rank = blockIdx.x % BLOCKS;  // a cluster is BLOCKS neighbours of the grid
  const int64_t first = static_cast<int64_t>(rank) * PART;
  const int64_t left = COLS - first;
  const int count = static_cast<int>(left < 0 ? 0 : left < PART ? left : PART);
  const float* x_part = x + blockIdx.x / BLOCKS * COLS + first;
  float* out_part = out + blockIdx.x / BLOCKS * COLS + first;

  for (int at = threadIdx.x * WIDTH; at < count; at += THREADS * WIDTH) copy(part + at, x_part + at);
  asm volatile("cp.async.wait_all;" ::: "memory");  // a thread reads only what it brought itself

  float largest = -INFINITY;
  for (int at = threadIdx.x * WIDTH; at < count; at += THREADS * WIDTH) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) largest = fmaxf(largest, part[at + i]);
  }
  const float base = largest == -INFINITY ? 0.0f : largest;
  float sum = 0.0f;
  for (int at = threadIdx.x * WIDTH; at < count; at += THREADS * WIDTH) {
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      part[at + i] = expf(part[at + i] - base);
      sum += part[at + i];
    }
  }

  Tally tally = warp_merged({largest, sum});
  const int lane = threadIdx.x % 32;
  if (lane == 0) tallies[threadIdx.x / 32] = tally;
  __syncthreads();
  tally = warp_merged(lane < WARPS ? tallies[lane] : Tally{-INFINITY, 0.0f});
  cluster_barrier();  // all blocks of the cluster run: their shared memory may be written
  if (threadIdx.x < BLOCKS) {
    store_remote(&of_blocks[rank].largest, threadIdx.x, tally.largest);
    store_remote(&of_blocks[rank].sum, threadIdx.x, tally.sum);
  }
  cluster_barrier();
  tally = of_blocks[0];
#pragma unroll
  for (int i = 1; i < BLOCKS; ++i) tally = merged(tally, of_blocks[i]);

  // The thread's exponentials are relative to its own maximum. A row of -inf alone: 0 / 0, NaN as in torch.
  const float scale = (largest == -INFINITY ? 1.0f : expf(largest - tally.largest)) / tally.sum;
  for (int at = threadIdx.x * WIDTH; at < count; at += THREADS * WIDTH) {
    if constexpr (WIDTH == 4) {
      const float4 four = *reinterpret_cast<const float4*>(part + at);
      __stcs(reinterpret_cast<float4*>(out_part + at),
             make_float4(four.x * scale, four.y * scale, four.z * scale, four.w * scale));
    } else {
      out_part[at] = part[at] * scale;
    }
  }
}

}  // namespace

extern "C" void run(const float* x, float* out, void* /*workspace*/, cudaStream_t stream) {
  cudaFuncSetAttribute(softmax, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
  softmax<<<static_cast<unsigned>(ROWS * BLOCKS), THREADS, SHARED_BYTES, stream>>>(x, out);
}
