// The arithmetic units of one GPU as kernels that do nothing else: FFMA on registers, tensor cores by `wgmma` on operands
// in shared memory where RIDGELINE_WGMMA is defined (compute_90a), else by `mma.sync` on registers (compute_80 and later).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include <vector>

namespace {

using Burn = void (*)(int steps, int launch, float* sink);

// One unit and the kernel that keeps it busy; `flops_per_step` counts a block's multiplications and additions.
struct Unit {
    const char* precision_class;
    Burn run;
    int threads, blocks_wanted, shared_bytes;
    double flops_per_step;  // 0: this architecture has no such unit
};

__device__ __forceinline__ uint32_t hash(uint32_t x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

// In (-1, 1).
__device__ __forceinline__ float random_unit(uint32_t seed) {
    return static_cast<float>(static_cast<int32_t>(hash(seed))) * 4.6566128e-10f;
}

// ------------------------------------------------------------------------------------------------------------ FFMA

constexpr int kChains = 16;  // times 8 warps a scheduler: far more than the latency of 4 cycles needs
constexpr int kFmaThreads = 256;

__global__ void __launch_bounds__(kFmaThreads) burn_fp32(int steps, int launch, float* sink) {
    const uint32_t seed = (launch * gridDim.x + blockIdx.x) * kFmaThreads + threadIdx.x;
    // Below 1 in magnitude, so the chains stay finite; two addends in turn, so that they do not come to rest either.
    const float factor = -0.5f - 0.49f * fabsf(random_unit(seed)), odd = random_unit(seed + 1), even = random_unit(seed + 2);
    float chains[kChains];
#pragma unroll
    for (int i = 0; i < kChains; ++i) chains[i] = random_unit(seed + 3 + i);
#pragma unroll 4
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int i = 0; i < kChains; ++i) chains[i] = fmaf(chains[i], factor, odd);
#pragma unroll
        for (int i = 0; i < kChains; ++i) chains[i] = fmaf(chains[i], factor, even);
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kChains; ++i) sum += chains[i];
    if (sum == 1.2345e30f) *sink = sum;  // never: it keeps the chains alive
}

// ---------------------------------------------------------------------------------------------------- tensor cores

enum class Operand { kTf32, kFp16, kBf16, kFp8 };

// Returns 32 bits of random finite operands: one tf32, two halves, or four e4m3 of magnitude 1 at most.
template <Operand T>
__device__ __forceinline__ uint32_t random_operands(uint32_t seed) {
    const float first = random_unit(2 * seed), second = random_unit(2 * seed + 1);
    if constexpr (T == Operand::kTf32) {
        return __float_as_uint(first) & 0xffffe000u;
    } else if constexpr (T == Operand::kFp16) {
        const __half2 pair = __floats2half2_rn(first, second);
        return reinterpret_cast<const uint32_t&>(pair);
    } else if constexpr (T == Operand::kBf16) {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
        return reinterpret_cast<const uint32_t&>(pair);
    } else {
        return hash(seed) & 0xb7b7b7b7u;  // exponents of at most 6 of 15: below 2
    }
}

#ifdef RIDGELINE_WGMMA

constexpr int kRows = 64, kColumns = 256, kRowBytes = 128, kStages = 2, kStepsOfRow = 4, kWarpgroup = 128;
constexpr int kStageBytes = (kRows + kColumns) * kRowBytes;
constexpr int kSharedBytes = kStages * kStageBytes + 1024;  // a swizzled tile starts at a multiple of 1024

// The descriptor of a K-major tile of 128-byte rows, swizzled over 128 bytes: groups of 8 rows are 1024 bytes apart.
// (PTX ISA, "Asynchronous warpgroup level matrix shared memory layout".) 32 bytes further along K it grows by 2.
__device__ __forceinline__ uint64_t descriptor(uint32_t address) {
    return static_cast<uint64_t>((address & 0x3ffff) >> 4) | (1ull << 16) | (static_cast<uint64_t>(1024 >> 4) << 32) |
           (1ull << 62);
}

#define ACCUMULATORS \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, " \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
#define EIGHT(i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), \
        "+f"(d[i + 7])
#define THIRTY_TWO(i) EIGHT(i), EIGHT(i + 8), EIGHT(i + 16), EIGHT(i + 24)
#define WGMMA(shape_and_types, scales) \
    asm volatile("wgmma.mma_async.sync.aligned." shape_and_types " " ACCUMULATORS "%128, %129, " scales ";\n" \
                 : THIRTY_TWO(0), THIRTY_TWO(32), THIRTY_TWO(64), THIRTY_TWO(96) \
                 : "l"(a), "l"(b))

template <Operand T>
__device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b) {
    if constexpr (T == Operand::kTf32) WGMMA("m64n256k8.f32.tf32.tf32", "1, 1, 1");
    if constexpr (T == Operand::kFp16) WGMMA("m64n256k16.f32.f16.f16", "1, 1, 1, 0, 0");
    if constexpr (T == Operand::kBf16) WGMMA("m64n256k16.f32.bf16.bf16", "1, 1, 1, 0, 0");
    if constexpr (T == Operand::kFp8) WGMMA("m64n256k32.f32.e4m3.e4m3", "1, 1, 1");
}

// One warpgroup a block, two blocks a multiprocessor: while one waits for its group of products, the other's run.
template <Operand T>
__global__ void __launch_bounds__(kWarpgroup, 2) burn_tensor(int steps, int launch, float* sink) {
    extern __shared__ unsigned char shared[];
    const uint32_t start = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
    const uint32_t base = (start + 1023u) & ~1023u;
    auto* words = reinterpret_cast<uint32_t*>(shared + (base - start));
    for (int i = threadIdx.x; i < kStages * kStageBytes / 4; i += kWarpgroup)
        words[i] = random_operands<T>((launch * gridDim.x + blockIdx.x) * kStageBytes + i);
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
    __syncthreads();
    float d[128];
#pragma unroll
    for (int i = 0; i < 128; ++i) d[i] = 0.0f;
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
#pragma unroll
        for (int stage = 0; stage < kStages; ++stage)
#pragma unroll
            for (int k = 0; k < kStepsOfRow; ++k)
                multiply<T>(d, descriptor(base + stage * kStageBytes) + 2 * k,
                            descriptor(base + stage * kStageBytes + kRows * kRowBytes) + 2 * k);
        asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n" ::: "memory");
    }
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 128; ++i) sum += d[i];
    if (sum == 1.2345e30f) *sink = sum;
}

template <Operand T>
Unit tensor_unit(const char* precision_class, int depth) {
    return Unit{precision_class, burn_tensor<T>, kWarpgroup, 2, kSharedBytes,
                2.0 * kRows * kColumns * depth * kStages * kStepsOfRow};
}

inline std::vector<Unit> tensor_units() {
    return {tensor_unit<Operand::kTf32>("tf32", 8), tensor_unit<Operand::kFp16>("fp16", 16),
            tensor_unit<Operand::kBf16>("bf16", 16), tensor_unit<Operand::kFp8>("fp8", 32)};
}

#else

constexpr int kMmaThreads = 256, kHigh = 2, kWide = 4;  // 8 independent accumulators a warp

#define MMA(shape_and_types) \
    asm volatile("mma.sync.aligned." shape_and_types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};\n" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <Operand T>
__device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    if constexpr (T == Operand::kTf32) MMA("m16n8k8.row.col.f32.tf32.tf32.f32");
    if constexpr (T == Operand::kFp16) MMA("m16n8k16.row.col.f32.f16.f16.f32");
    if constexpr (T == Operand::kBf16) MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
}

template <Operand T>
__global__ void __launch_bounds__(kMmaThreads) burn_tensor(int steps, int launch, float* sink) {
    const uint32_t seed = ((launch * gridDim.x + blockIdx.x) * kMmaThreads + threadIdx.x) * 64;
    uint32_t a[kHigh][4], b[kWide][2];
    float d[kHigh][kWide][4] = {};
#pragma unroll
    for (int i = 0; i < kHigh * 4; ++i) a[i / 4][i % 4] = random_operands<T>(seed + i);
#pragma unroll
    for (int i = 0; i < kWide * 2; ++i) b[i / 2][i % 2] = random_operands<T>(seed + 32 + i);
#pragma unroll 2
    for (int step = 0; step < steps; ++step)
#pragma unroll
        for (int i = 0; i < kHigh * kWide; ++i) multiply<T>(d[i / kWide][i % kWide], a[i / kWide], b[i % kWide]);
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kHigh * kWide * 4; ++i) sum += d[i / (4 * kWide)][i / 4 % kWide][i % 4];
    if (sum == 1.2345e30f) *sink = sum;
}

template <Operand T>
Unit tensor_unit(const char* precision_class, int depth) {
    return Unit{precision_class, burn_tensor<T>, kMmaThreads, 4, 0,
                2.0 * 16 * 8 * depth * kHigh * kWide * (kMmaThreads / 32)};
}

inline std::vector<Unit> tensor_units() {
    return {tensor_unit<Operand::kTf32>("tf32", 8), tensor_unit<Operand::kFp16>("fp16", 16),
            tensor_unit<Operand::kBf16>("bf16", 16)};
}

#endif

inline std::vector<Unit> units() {
    std::vector<Unit> all = {{"fp32", burn_fp32, kFmaThreads, 4, 0, 2.0 * 2 * kChains * kFmaThreads}};
    for (const Unit& unit : tensor_units()) all.push_back(unit);
    return all;
}

}  // namespace
