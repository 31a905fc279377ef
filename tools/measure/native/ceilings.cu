// Ceilings of one GPU: how fast all its multiprocessors together read, write and copy memory, and how many operations a
// second its units do in each class of arithmetic.
//
//   ceilings SECONDS_PER_SIZE BYTES [BYTES ...]   ->  one JSON object on stdout; the GPU is the first visible one
//
// Rates are 1e9 bytes a second, bytes read plus bytes written. For each total, every way is tried with several shapes of
// the grid and the fastest pass counts: a ceiling is what the machine can do. A small total is passed over many times
// within one launch, or the launch itself would be measured; its loads go past the L1, which no two launches share.
// Arithmetic is measured over launches of about 10 ms on operands that never leave registers and shared memory, random
// ones: on zeros a tensor core draws less power and runs faster than on any real data.
//
// Exit status: 0; 2 for wrong arguments; 3 and one line on stderr for a CUDA error.
#include <cuda_runtime.h>
#include <stdint.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "ceilings_mma.h"

namespace {

void check(cudaError_t error, const char* doing) {
    if (error == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", doing, cudaGetErrorString(error));
    exit(3);
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// One pair of events, reused: elapsed time of what is between `start` and `stop` on the default stream.
class Clock {
   public:
    Clock() {
        check(cudaEventCreate(&start_), "creating an event");
        check(cudaEventCreate(&stop_), "creating an event");
    }
    void start() { check(cudaEventRecord(start_), "recording an event"); }
    double stop_s() {
        check(cudaGetLastError(), "launching a kernel");
        check(cudaEventRecord(stop_), "recording an event");
        check(cudaEventSynchronize(stop_), "running a kernel");
        float ms = 0.0f;
        check(cudaEventElapsedTime(&ms, start_, stop_), "reading the events");
        return static_cast<double>(ms) / 1e3;
    }

   private:
    cudaEvent_t start_ = nullptr, stop_ = nullptr;
};

// ---------------------------------------------------------------------------------------------------------- memory

constexpr int kThreads = 512;
constexpr int kInFlight = 8;  // 16-byte accesses of one thread before the first is used

__device__ __forceinline__ uint4 random_vector(uint32_t seed) {
    uint32_t word[4];
    for (uint32_t& w : word) {
        seed = (seed ^ 61u) ^ (seed >> 16);
        seed *= 9u;
        seed ^= seed >> 4;
        seed *= 0x27d4eb2du;
        w = seed ^ (seed >> 15);
    }
    return make_uint4(word[0], word[1], word[2], word[3]);
}

__global__ void fill(uint4* memory, size_t count) {
    const size_t step = static_cast<size_t>(gridDim.x) * blockDim.x;
    for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        memory[i] = random_vector(static_cast<uint32_t>(i));
}

template <bool Streaming>
__device__ __forceinline__ uint4 load(const uint4* from) {
    return Streaming ? __ldcs(from) : __ldcg(from);
}

template <bool Streaming>
__device__ __forceinline__ void store(uint4* to, uint4 value) {
    if (Streaming) __stcs(to, value);
    else *to = value;
}

// Each block takes tiles of kInFlight x kThreads vectors, one grid apart, until the buffer is done; `count` is rounded
// down to whole tiles by the host. `sink` is never written: the comparison keeps the loads alive.
template <bool Streaming>
__global__ void __launch_bounds__(kThreads) read_all(uint4* memory, size_t tiles, int passes, uint4* sink) {
    uint4 sum = make_uint4(0, 0, 0, 0);
    for (int pass = 0; pass < passes; ++pass)
        for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const uint4* from = memory + tile * kThreads * kInFlight + threadIdx.x;
            uint4 value[kInFlight];
#pragma unroll
            for (int i = 0; i < kInFlight; ++i) value[i] = load<Streaming>(from + i * kThreads);
#pragma unroll
            for (int i = 0; i < kInFlight; ++i)
                sum = make_uint4(sum.x + value[i].x, sum.y ^ value[i].y, sum.z + value[i].z, sum.w ^ value[i].w);
        }
    if (sum.x == 0x12345678u && sum.y == 0x9abcdef0u && sum.z == 0x0fedcba9u && sum.w == 0x87654321u) *sink = sum;
}

template <bool Streaming>
__global__ void __launch_bounds__(kThreads) write_all(uint4* memory, size_t tiles, int passes, uint4*) {
    uint4 value = random_vector(blockIdx.x * kThreads + threadIdx.x);
    for (int pass = 0; pass < passes; ++pass)
        for (size_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            uint4* to = memory + tile * kThreads * kInFlight + threadIdx.x;
            value.x += 0x9e3779b9u;
#pragma unroll
            for (int i = 0; i < kInFlight; ++i) store<Streaming>(to + i * kThreads, value);
        }
}

// The first half to the second.
template <bool Streaming>
__global__ void __launch_bounds__(kThreads) copy_all(uint4* memory, size_t tiles, int passes, uint4*) {
    const size_t half = tiles / 2 * kThreads * kInFlight;
    for (int pass = 0; pass < passes; ++pass)
        for (size_t tile = blockIdx.x; tile < tiles / 2; tile += gridDim.x) {
            uint4* from = memory + tile * kThreads * kInFlight + threadIdx.x;
            uint4 value[kInFlight];
#pragma unroll
            for (int i = 0; i < kInFlight; ++i) value[i] = load<Streaming>(from + i * kThreads);
#pragma unroll
            for (int i = 0; i < kInFlight; ++i) store<Streaming>(from + half + i * kThreads, value[i]);
        }
}

using Pass = void (*)(uint4*, size_t, int, uint4*);

struct Way {
    const char* name;
    Pass run;
};

constexpr Way kWays[] = {{"read", read_all<false>},   {"read_streaming", read_all<true>},
                         {"write", write_all<false>}, {"write_streaming", write_all<true>},
                         {"copy", copy_all<false>},   {"copy_streaming", copy_all<true>}};
constexpr int kBlocksPerMultiprocessor[] = {1, 2, 3, 4, 16};  // resident together, or in waves as a plain kernel's are
constexpr double kBytesPerLaunch = 4e9;                       // about 1 ms

double fastest_gbps(const Way& way, uint4* memory, size_t bytes, uint4* sink, int multiprocessors, double seconds) {
    static Clock clock;
    const size_t tiles = bytes / (sizeof(uint4) * kThreads * kInFlight) / 2 * 2;
    const double moved = static_cast<double>(tiles) * sizeof(uint4) * kThreads * kInFlight;
    const int passes = std::max(1, static_cast<int>(kBytesPerLaunch / moved));
    double best = 1e30;
    const double end = now() + seconds;
    for (int repetition = 0; repetition < 3 || (now() < end && repetition < 100); ++repetition)
        for (int blocks : kBlocksPerMultiprocessor) {
            clock.start();
            way.run<<<blocks * multiprocessors, kThreads>>>(memory, tiles, passes, sink);
            best = std::min(best, clock.stop_s() / passes);
        }
    return moved / best / 1e9;
}

// ------------------------------------------------------------------------------------------------------ arithmetic

constexpr double kSecondsPerLaunch = 0.01;  // long enough for the clock that the power limit allows to set in
constexpr int kLaunches = 20;

// Returns 1e9 operations a second, 0 where this architecture has no such unit.
double fastest_gflops(const Unit& unit, float* sink, int multiprocessors) {
    static Clock clock;
    if (unit.flops_per_step == 0) return 0.0;
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(unit.run), cudaFuncAttributeMaxDynamicSharedMemorySize,
                               unit.shared_bytes),
          "raising the shared memory of a kernel");
    int resident = 0;
    check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, reinterpret_cast<const void*>(unit.run),
                                                        unit.threads, unit.shared_bytes),
          "asking for the occupancy");
    const int blocks = multiprocessors * std::max(1, std::min(resident, unit.blocks_wanted));
    int steps = 2000;
    double best = 0.0;
    for (int launch = 0; launch < kLaunches; ++launch) {
        clock.start();
        unit.run<<<blocks, unit.threads, unit.shared_bytes>>>(steps, launch, sink);
        const double seconds = clock.stop_s();
        if (launch > 1) best = std::max(best, unit.flops_per_step * steps * blocks / seconds / 1e9);
        if (launch < 2) steps = static_cast<int>(std::min(1e9, std::max(1.0, steps * kSecondsPerLaunch / seconds)));
    }
    return best;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const double seconds = atof(argv[1]) / (sizeof(kWays) / sizeof(kWays[0]));
    std::vector<size_t> totals;
    for (int i = 2; i < argc; ++i) totals.push_back(strtoull(argv[i], nullptr, 10));
    const size_t largest = *std::max_element(totals.begin(), totals.end());
    if (*std::min_element(totals.begin(), totals.end()) < 2 * sizeof(uint4) * kThreads * kInFlight) return 2;

    int multiprocessors = 0;
    check(cudaSetDevice(0), "opening the GPU");
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "counting multiprocessors");
    uint4* memory = nullptr;
    uint4* sink = nullptr;
    check(cudaMalloc(&memory, largest), "allocating the largest working set");
    check(cudaMalloc(&sink, 4096), "allocating memory");
    fill<<<16 * multiprocessors, kThreads>>>(memory, largest / sizeof(uint4));
    check(cudaGetLastError(), "launching a kernel");
    check(cudaDeviceSynchronize(), "filling memory");

    printf("{\"threads\": %d, \"bandwidth\": [", multiprocessors);
    for (size_t i = 0; i < totals.size(); ++i) {
        printf("%s{\"bytes\": %zu", i ? ", " : "", totals[i]);
        for (const Way& way : kWays)
            printf(", \"%s\": %.6g", way.name,
                   fastest_gbps(way, memory, totals[i], sink, multiprocessors, seconds));
        printf("}");
    }
    printf("], \"class_gflops\": {");
    bool is_first = true;
    for (const Unit& unit : units()) {
        const double gflops = fastest_gflops(unit, reinterpret_cast<float*>(sink), multiprocessors);
        if (gflops <= 0.0) continue;
        printf("%s\"%s\": %.6g", is_first ? "" : ", ", unit.precision_class, gflops);
        is_first = false;
    }
    printf("}}\n");
    check(cudaDeviceSynchronize(), "finishing");
    check(cudaFree(memory), "freeing memory");
    check(cudaFree(sink), "freeing memory");
    return 0;
}
