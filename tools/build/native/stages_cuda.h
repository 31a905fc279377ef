// Clocks of RIDGELINE_STAGE on a GPU, in a profile's build alone.
//
// In a kernel the first thread of each warp reads its multiprocessor's clock; the cycles of all warps are added up. In
// `run` events on the stream take the time of what is launched. A warp, or `run`, is in one stage at a time: entering
// one leaves the one before, and the end of a block goes back to it.
#include <stdio.h>

#include <type_traits>

namespace ridgeline_stages {

constexpr unsigned kSlots = 1024, kNone = kSlots;  // tools/build/stages.py computes the same slots

__host__ __device__ constexpr unsigned slot_of(const char *name) {
    unsigned hash = 2166136261u;  // FNV-1a
    for (; *name != '\0'; ++name)
        if (*name != '"') hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
    return hash % kSlots;
}

// -------------------------------------------------------------------------------------------------------- in a kernel

constexpr unsigned kCopies = 16;  // blocks add to different ones, so that they wait less for each other
__device__ unsigned long long g_cycles[kCopies][kSlots];

struct Warp {
    unsigned tag;  // of the block that wrote it: shared memory begins with what an earlier block left there
    unsigned slot;
    long long since;
};

__device__ inline long long cycles() {
    long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now) : : "memory");
    return now;
}

__device__ inline unsigned enter_in_kernel(unsigned slot) {
    __shared__ Warp warps[32];
    const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    if (thread % 32 != 0) return kNone;
    const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    Warp &warp = warps[thread / 32];
    const unsigned tag = block ^ 0x52494447u;
    const unsigned before = warp.tag == tag && warp.slot < kSlots ? warp.slot : kNone;
    const long long at = cycles();
    if (before != kNone && at > warp.since)
        atomicAdd(&g_cycles[block % kCopies][before], static_cast<unsigned long long>(at - warp.since));
    warp.tag = tag;
    warp.slot = slot;
    warp.since = cycles();
    return before;
}

// ------------------------------------------------------------------------------------------------------------- in run

constexpr int kMarks = 256;  // of one call; later stages count for the last one

struct Host {
    cudaStream_t stream = nullptr;
    unsigned slot = kNone;
    int marks = 0;
    cudaEvent_t events[kMarks] = {};
    unsigned slots[kMarks] = {};
    double milliseconds[kSlots] = {};
};
inline Host g_host;

inline unsigned enter_in_run(unsigned slot) {
    const unsigned before = g_host.slot;
    g_host.slot = slot;
    if (g_host.marks == kMarks) return before;
    cudaEvent_t &event = g_host.events[g_host.marks];
    if (event == nullptr && cudaEventCreate(&event) != cudaSuccess) return before;
    if (cudaEventRecord(event, g_host.stream) == cudaSuccess) g_host.slots[g_host.marks++] = slot;
    return before;
}

inline void begin_call(void *stream) {
    g_host.stream = static_cast<cudaStream_t>(stream);
    g_host.marks = 0;
}

inline void end_call() {
    if (g_host.marks == 0 || cudaStreamSynchronize(g_host.stream) != cudaSuccess) return;
    for (int i = 0; i + 1 < g_host.marks; ++i) {
        float taken = 0;
        if (g_host.slots[i] < kSlots && cudaEventElapsedTime(&taken, g_host.events[i], g_host.events[i + 1]) == cudaSuccess)
            g_host.milliseconds[g_host.slots[i]] += taken;
    }
}

class Scope {
   public:
    __host__ __device__ explicit Scope(unsigned slot) : outer_(enter(slot)) {}
    __host__ __device__ ~Scope() { enter(outer_); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

   private:
    __host__ __device__ static unsigned enter(unsigned slot) {
#if defined(__CUDA_ARCH__)
        return enter_in_kernel(slot);
#else
        return enter_in_run(slot);
#endif
    }

    unsigned outer_;
};

// Begins a new table where `calls` is 0; prints what each stage took in one of `calls` calls.
inline void table(int calls) {
    static unsigned long long read[kCopies][kSlots], zeros[kCopies][kSlots];
    if (cudaMemcpyFromSymbol(read, g_cycles, sizeof read) != cudaSuccess) return;
    if (cudaMemcpyToSymbol(g_cycles, zeros, sizeof zeros) != cudaSuccess) return;
    for (unsigned slot = 0; slot < kSlots; ++slot) {
        double in_kernels = 0;
        for (unsigned copy = 0; copy < kCopies; ++copy) in_kernels += static_cast<double>(read[copy][slot]);
        if (calls > 0 && in_kernels > 0) printf("cycles %u %.9f\n", slot, in_kernels / calls);
        if (calls > 0 && g_host.milliseconds[slot] > 0) printf("stage %u %.9f\n", slot, g_host.milliseconds[slot] / calls);
        g_host.milliseconds[slot] = 0;
    }
    fflush(stdout);
}

}  // namespace ridgeline_stages
