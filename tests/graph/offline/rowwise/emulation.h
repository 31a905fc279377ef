// flags: -O1 -fno-fast-math
// CUDA on a CPU, as far as the composed row-wise kernels use it: a block is an operating-system thread, its threads are
// coroutines that take turns at barriers and shuffles. What PTX does is written again in C++ by emulation.py.
// A distribution's g++ may define _FORTIFY_SOURCE, whose longjmp aborts on a jump to a coroutine's stack. The headers that
// come before have read it by now; setjmp.h asks for the level that they took from it.
#include <features.h>
#undef __USE_FORTIFY_LEVEL
#define __USE_FORTIFY_LEVEL 0
#include <setjmp.h>
#include <ucontext.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __shared__ static thread_local
#define __align__(n)

struct uint4 { unsigned x, y, z, w; };
struct uint2 { unsigned x, y; };
struct dim3 { unsigned x = 1, y = 1, z = 1; dim3(unsigned n = 1) : x(n) {} };
static thread_local dim3 threadIdx(0), blockIdx(0), gridDim(1), blockDim(1);
using cudaStream_t = void*;
using cudaError_t = int;
constexpr cudaError_t cudaSuccess = 0;

// One barrier of a block's coroutines, by generations.
struct EmulatedBarrier { unsigned arrived = 0, generation = 0; };

struct EmulatedBlock {
  std::vector<ucontext_t> contexts;  // used once each: later turns jump, which needs no system call
  std::unique_ptr<jmp_buf[]> places;
  std::vector<bool> started;
  std::vector<std::unique_ptr<char[]>> stacks;
  std::vector<bool> ended;
  std::vector<EmulatedBarrier> warps;
  std::vector<float> lanes;
  EmulatedBarrier all;
  jmp_buf scheduler;
  std::function<void()> kernel;
  std::unique_ptr<unsigned char[]> shared;
  std::atomic<unsigned>* peers = nullptr;  // of the blocks that run side by side: a counter that only grows
  unsigned peer_count = 1, peer_meetings = 0;
};
static thread_local EmulatedBlock* emulated = nullptr;
constexpr size_t EMULATED_STACK = 128 << 10;

static void emulated_yield() {
  const unsigned own = threadIdx.x;
  if (_setjmp(emulated->places[own]) == 0) _longjmp(emulated->scheduler, 1);
}
static void emulated_wait(EmulatedBarrier& barrier, unsigned count) {
  const unsigned generation = barrier.generation;
  if (++barrier.arrived == count) {
    barrier.arrived = 0;
    ++barrier.generation;
  }
  while (barrier.generation == generation) emulated_yield();
}
static void __syncthreads() { emulated_wait(emulated->all, blockDim.x); }
static void emulated_peers() {  // all threads of all blocks that run side by side
  __syncthreads();
  if (threadIdx.x == 0) {
    emulated->peers->fetch_add(1);
    const unsigned goal = ++emulated->peer_meetings * emulated->peer_count;
    while (emulated->peers->load() < goal) std::this_thread::yield();
  }
  __syncthreads();
}
static float __shfl_xor_sync(unsigned, float value, int distance) {
  const unsigned own = threadIdx.x;
  EmulatedBarrier& warp = emulated->warps[own / 32];
  emulated->lanes[own] = value;
  emulated_wait(warp, 32);
  const float other = emulated->lanes[own ^ static_cast<unsigned>(distance)];
  emulated_wait(warp, 32);
  return other;
}
static void emulated_start() {
  const unsigned own = threadIdx.x;
  emulated->kernel();
  emulated->ended[own] = true;
  _longjmp(emulated->scheduler, 1);
}
static void emulated_run_block(EmulatedBlock& block, unsigned index, unsigned blocks, unsigned threads) {
  emulated = &block;
  blockIdx.x = index;
  gridDim.x = blocks;
  blockDim.x = threads;
  block.contexts.resize(threads);
  block.places = std::make_unique<jmp_buf[]>(threads);
  block.started.assign(threads, false);
  block.stacks.resize(threads);
  block.ended.assign(threads, false);
  block.warps.resize(threads / 32);
  block.lanes.resize(threads);
  for (unsigned i = 0; i < threads; ++i) {
    block.stacks[i] = std::make_unique<char[]>(EMULATED_STACK);
    getcontext(&block.contexts[i]);
    block.contexts[i].uc_stack.ss_sp = block.stacks[i].get();
    block.contexts[i].uc_stack.ss_size = EMULATED_STACK;
    block.contexts[i].uc_link = nullptr;
    makecontext(&block.contexts[i], emulated_start, 0);
  }
  for (volatile bool is_left = true; is_left;) {
    is_left = false;
    for (volatile unsigned i = 0; i < threads;) {
      const unsigned own = i;
      i = own + 1;
      if (block.ended[own]) continue;
      is_left = true;
      threadIdx.x = own;
      if (_setjmp(block.scheduler) != 0) continue;
      if (block.started[own]) _longjmp(block.places[own], 1);
      block.started[own] = true;
      setcontext(&block.contexts[own]);
    }
  }
}
// `together` blocks run side by side: 1, a cluster's, or all.
static void emulated_launch(unsigned blocks, unsigned threads, size_t shared, unsigned together,
                            std::function<void()> kernel) {
  for (unsigned first = 0; first < blocks; first += together) {
    std::atomic<unsigned> peers{0};
    std::vector<std::thread> running;
    for (unsigned i = 0; i < together; ++i)
      running.emplace_back([&, i] {
        EmulatedBlock block;
        block.kernel = kernel;
        block.shared = std::make_unique<unsigned char[]>(shared + 128);
        block.peers = &peers;
        block.peer_count = together;
        emulated_run_block(block, first + i, blocks, threads);
      });
    for (std::thread& each : running) each.join();
  }
}
static unsigned char* emulated_shared() {
  const uintptr_t at = reinterpret_cast<uintptr_t>(emulated->shared.get());
  return reinterpret_cast<unsigned char*>((at + 127) / 128 * 128);
}

template <class T> static T __ldg(const T* at) {
  if (reinterpret_cast<uintptr_t>(at) % sizeof(T)) std::abort();  // a misaligned address faults on a GPU
  return *at;
}
template <class T> static T __ldcs(const T* at) { return __ldg(at); }
template <class T> static T __ldcg(const T* at) { return *at; }
template <class T> static void __stcs(T* at, T value) {
  if (reinterpret_cast<uintptr_t>(at) % sizeof(T)) std::abort();
  *at = value;
}
template <class T> static void __stcg(T* at, T value) { *at = value; }
static float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
using std::isinf;
using std::isnan;

#define cudaFuncSetAttribute(...) 0
#define cudaMemsetAsync(to, value, bytes, stream) memset(to, value, bytes)
