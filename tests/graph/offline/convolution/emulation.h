// One block of a CUDA kernel at a time on a CPU: each thread is a fiber that runs to its next barrier. Shared memory is
// poisoned, copies into it are checked, and tensor-core instructions compute what PTX says of their fragments.
// Built for what it computes, not for its speed:
// flags: -O1
#include <ucontext.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __syncthreads emulated::block_barrier

struct float4 {
  float x, y, z, w;
};
static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct Coordinates {
  unsigned x;
};
static Coordinates threadIdx, blockIdx, blockDim, gridDim;
static unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
static float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }

namespace emulated {
struct Fiber {
  ucontext_t context;
  std::vector<char> stack;
  bool is_done;
};
static std::vector<Fiber> fibers;
static ucontext_t scheduler;
static std::function<void()> body;
static unsigned current, arrived, generation, warp_arrived[32], warp_generation[32];
static char* shared;
static size_t shared_bytes;
static unsigned operands[32][32][4];
static float weights[32][32][2];

static void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}
static void yield() { swapcontext(&fibers[current].context, &scheduler); }
static void enter() {
  body();
  fibers[current].is_done = true;
  yield();
}
static void wait(unsigned& count, unsigned& turn, unsigned members) {
  const unsigned mine = turn;
  if (++count == members) {
    count = 0;
    ++turn;
  }
  while (turn == mine) {
    const unsigned self = current;
    yield();
    current = self;
  }
}
static void block_barrier() { wait(arrived, generation, blockDim.x); }
static void warp_barrier() { wait(warp_arrived[current / 32], warp_generation[current / 32], 32); }

static void launch(unsigned grid, unsigned threads, size_t bytes, std::function<void()> kernel) {
  std::vector<char> memory(bytes + 128);
  shared = memory.data() + (128 - reinterpret_cast<uintptr_t>(memory.data()) % 128);
  shared_bytes = bytes;
  body = kernel;
  gridDim.x = grid;
  blockDim.x = threads;
  if (fibers.size() < threads) fibers.resize(threads);
  for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) {
    std::memset(shared, 0xff, bytes);
    for (unsigned i = 0; i < threads; ++i) {
      Fiber& fiber = fibers[i];
      fiber.stack.resize(1 << 17);
      fiber.is_done = false;
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.data();
      fiber.context.uc_stack.ss_size = fiber.stack.size();
      makecontext(&fiber.context, enter, 0);
    }
    for (unsigned left = threads; left > 0;) {
      for (unsigned i = 0; i < threads; ++i) {
        if (fibers[i].is_done) continue;
        current = threadIdx.x = i;
        swapcontext(&scheduler, &fibers[i].context);
        left -= fibers[i].is_done;
      }
    }
  }
}

static void copy(float* to, const float* from, size_t bytes, bool is_read) {
  const char* start = reinterpret_cast<char*>(to);
  if (start < shared || start + bytes > shared + shared_bytes) fail("a copy past shared memory");
  if (reinterpret_cast<uintptr_t>(to) % bytes || (is_read && reinterpret_cast<uintptr_t>(from) % bytes)) {
    fail("a copy that is not aligned");
  }
  if (is_read) std::memcpy(to, from, bytes);
  else std::memset(to, 0, bytes);
}

static float to_tf32(float value) { return __uint_as_float((__float_as_uint(value) + 0x1000) & ~0x1fffu); }
static float tf32(unsigned bits) {
  if (bits & 0x1fff) fail("an operand that is not rounded to TF32");
  return __uint_as_float(bits);
}

// A fragment's a[half * 2 + h] of lane 4 * g + t is the element of row g + 8 * h and column 4 * half + t.
template <class Weight>
static void multiply(float* low, float* high, const unsigned* a, int blocks, Weight weight) {
  std::memcpy(operands[current / 32][current % 32], a, 16);
  warp_barrier();
  const int lane = current % 32;
  for (int n = 0; n < blocks; ++n) {
    for (int i = 0; i < 4; ++i) {
      float* sum = (i / 2 ? high : low) + 2 * n + i % 2;
      for (int k = 0; k < 8; ++k) {
        const unsigned operand = operands[current / 32][lane / 4 * 4 + k % 4][k / 4 * 2 + i / 2];
        *sum += tf32(operand) * tf32(__float_as_uint(weight(k, 8 * n + lane % 4 * 2 + i % 2)));
      }
    }
  }
  warp_barrier();
}
static void mma(float* low, float* high, const unsigned* a, float b0, float b1) {
  weights[current / 32][current % 32][0] = b0;
  weights[current / 32][current % 32][1] = b1;
  multiply(low, high, a, 1, [](int k, int n) { return weights[current / 32][4 * n + k % 4][k / 4]; });
}
static void wgmma(float* low, float* high, const unsigned* a, uint64_t descriptor, int filters) {
  const size_t start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4;
  const size_t stride = (descriptor >> 32 & 0x3fff) << 4;
  multiply(low, high, a, filters / 8, [=](int k, int n) {
    const size_t at = start + k / 4 * leading + n / 8 * stride + n % 8 * 16 + k % 4 * 4;
    if (at + 4 > shared_bytes) fail("a descriptor past shared memory");
    return *reinterpret_cast<float*>(shared + at);
  });
}
}  // namespace emulated

static size_t __cvta_generic_to_shared(const void* pointer) { return static_cast<const char*>(pointer) - emulated::shared; }
