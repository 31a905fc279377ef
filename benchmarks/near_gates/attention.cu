// Attention forward, fp16, heads of 64, no mask: one persistent block an SM, a TMA producer and three
// wgmma consumers (160 registers) of 64 queries each, K and V streamed in tiles of 128 keys, QK(j+1) issued
// before PV(j).
//
// The softmax keeps a row's stabiliser from earlier tiles. A tile costs a lane-local maximum and one warp vote,
// whose latency hides behind the exponentials of its first EARLY groups of 16 keys, taken with the kept
// stabiliser. Only where a score passes it by more than 8 (log2) the warp shuffles, raises it, scales the sum
// and (after PV(j) has ended) O, and takes those first exponentials again.
// Stabilisers of 2^20 (log2) or more, which a fused multiply-add cannot subtract well, put the warp into a mode
// that subtracts the raw maximum first.
//
// 4096 queries are not a multiple of 3 x 64: a head has 21 items of three warpgroups and one unit of 64 queries
// over. A block takes 10 full items and one short one (the units over, and the last 72 units of heads 62, 63,
// spread singly; four blocks take two), the short one near the time when its head is in the L2 cache.

#include <cuda.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>

// A token goes round the item's warpgroups, a quarter of the multiprocessor (and its MUFU) on its own: its holder
// takes the exponentials of a tile and passes it on after SPLIT of 8 groups of 16 keys.

constexpr int STAGES = 4;  // tune: STAGES = 3 | 4 | 5
constexpr int EARLY = 0;  // tune: EARLY = 0 | 1
constexpr int SPLIT = 6;  // tune: SPLIT = 4 | 5 | 6 | 7

constexpr int ATT_HEADS = 64;               // batch x heads
constexpr int ATT_TOKENS = 4096;
constexpr int ATT_DEPTH = 64;
constexpr int ATT_UNIT = 64;                // queries a warpgroup
constexpr int ATT_GROUPS = 3;               // consumer warpgroups
constexpr int ATT_BLOCK_K = 128;
constexpr int ATT_TILES = ATT_TOKENS / ATT_BLOCK_K;                     // 32
constexpr int ATT_GRID = 132;
constexpr int ATT_ITEMS = 11;               // of a block
constexpr int ATT_THREADS = 512;
constexpr uint32_t ATT_UNIT_BYTES = ATT_UNIT * ATT_DEPTH * 2;           // 8192
constexpr uint32_t ATT_Q_BYTES = ATT_GROUPS * ATT_UNIT_BYTES;           // 24576
constexpr uint32_t ATT_KV_BYTES = ATT_BLOCK_K * ATT_DEPTH * 2;          // 16384 each
constexpr uint32_t ATT_STAGE_BYTES = 2 * ATT_KV_BYTES;                  // 32768
constexpr uint32_t ATT_SMEM = 1024 + 2 * ATT_Q_BYTES + STAGES * ATT_STAGE_BYTES;
constexpr float ATT_C = 0.125f * 1.4426950408889634f;                   // 1 / sqrt(64), in log2
constexpr float ATT_C_INVERSE = 8.0f * 0.6931471805599453f;
constexpr float ATT_PASS = 8.0f;            // log2 by which scores may pass the stabiliser
constexpr float ATT_WIDE = 1048576.0f;

static_assert(ATT_SMEM + 256 <= 232448, "shared memory");
static_assert(EARLY >= 0 && EARLY <= SPLIT && SPLIT <= 8, "groups of 16 keys");

// ---------------------------------------------------------------------------------------------------------
// Small PTX helpers

__device__ __forceinline__ uint32_t att_smem(const void* p) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ __forceinline__ void att_bar_init(uint32_t bar, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}

__device__ __forceinline__ void att_bar_wait(uint32_t bar, uint32_t parity) {
    asm volatile(
        "{\n"
        ".reg .pred P1;\n"
        "LAB_WAIT:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
        "@P1 bra DONE;\n"
        "bra LAB_WAIT;\n"
        "DONE:\n"
        "}\n" ::"r"(bar),
        "r"(parity)
        : "memory");
}

// One arrival where `yes` is not zero, without a branch.
__device__ __forceinline__ void att_bar_arrive_if(uint32_t bar, uint32_t yes) {
    asm volatile(
        "{\n"
        ".reg .pred P1;\n"
        "setp.ne.b32 P1, %1, 0;\n"
        "@P1 mbarrier.arrive.shared::cta.b64 _, [%0];\n"
        "}\n" ::"r"(bar),
        "r"(yes)
        : "memory");
}

// The same, but not before `after`, bits of an exponential (never all ones), is known.
__device__ __forceinline__ void att_token_pass(uint32_t bar, uint32_t yes, uint32_t after) {
    asm volatile(
        "{\n"
        ".reg .pred P1, P2;\n"
        "setp.ne.b32 P1, %1, 0;\n"
        "setp.ne.and.b32 P2, %2, -1, P1;\n"
        "@P2 mbarrier.arrive.shared::cta.b64 _, [%0];\n"
        "}\n" ::"r"(bar),
        "r"(yes), "r"(after)
        : "memory");
}

__device__ __forceinline__ void att_bar_expect(uint32_t bar, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

__device__ __forceinline__ void att_tma(uint32_t dst, const CUtensorMap* map, uint32_t bar, int row) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
        ::"r"(dst), "l"(reinterpret_cast<uint64_t>(map)), "r"(bar), "r"(0), "r"(row)
        : "memory");
}

__device__ __forceinline__ float att_ex2(float x) {
    float y;
    asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float att_rcp(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// {lo, hi} as two halves, lo in the lower bits
__device__ __forceinline__ uint32_t att_pack(float lo, float hi) {
    uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(hi), "f"(lo));
    return r;
}

// Descriptor of a 128-byte swizzled tile of rows of 128 bytes: groups of 8 rows lie 1024 bytes apart.
// It serves K-major Q and K, and MN-major V (64 columns: one atom wide, so the leading offset is unused).
__device__ __forceinline__ uint64_t att_desc(uint32_t addr) {
    const uint64_t lo = static_cast<uint64_t>((addr & 0x3FFFFu) >> 4) | (1ull << 16);
    return lo | (64ull << 32) | (1ull << 62);
}

#define ATT_R32                                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

#define ATT_R64                                                                                         \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                           \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                  \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                  \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}"

#define ATT_8(C, A, B)                                                                                  \
    C(A[B + 0]), C(A[B + 1]), C(A[B + 2]), C(A[B + 3]), C(A[B + 4]), C(A[B + 5]), C(A[B + 6]), C(A[B + 7])
#define ATT_32(C, A, B) ATT_8(C, A, B), ATT_8(C, A, B + 8), ATT_8(C, A, B + 16), ATT_8(C, A, B + 24)

// S (64 queries x 128 keys) = Q K^T, issued and committed as one group.
__device__ __forceinline__ void att_issue_qk(float (&s)[64], uint64_t qd, uint64_t kd) {
    asm volatile(
        "{\n"
        ".reg .pred p0, p1;\n"
        ".reg .b64 qa, kb;\n"
        "setp.ne.b32 p0, %66, 0;\n"
        "setp.eq.b32 p1, %66, 0;\n"
        "wgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ATT_R64 ", %64, %65, p0, 1, 1, 0, 0;\n"
        "add.s64 qa, %64, 2;\n"
        "add.s64 kb, %65, 2;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ATT_R64 ", qa, kb, p1, 1, 1, 0, 0;\n"
        "add.s64 qa, %64, 4;\n"
        "add.s64 kb, %65, 4;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ATT_R64 ", qa, kb, p1, 1, 1, 0, 0;\n"
        "add.s64 qa, %64, 6;\n"
        "add.s64 kb, %65, 6;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " ATT_R64 ", qa, kb, p1, 1, 1, 0, 0;\n"
        "wgmma.commit_group.sync.aligned;\n"
        "}\n"
        : ATT_32("=f", s, 0), ATT_32("=f", s, 32)
        : "l"(qd), "l"(kd), "r"(0)
        : "memory");
}

// O (64 queries x 64) += P (64 queries x 128 keys, in registers) V, issued and committed as one group.
__device__ __forceinline__ void att_issue_pv(float (&o)[32], const uint32_t (&p)[32], uint64_t vd) {
    asm volatile(
        "{\n"
        ".reg .pred p1;\n"
        ".reg .b64 vb;\n"
        "setp.ne.b32 p1, %65, 0;\n"
        "wgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ATT_R32 ", {%32, %33, %34, %35}, %64, p1, 1, 1, 1;\n"
        "add.s64 vb, %64, 128;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ATT_R32 ", {%36, %37, %38, %39}, vb, p1, 1, 1, 1;\n"
        "add.s64 vb, %64, 256;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ATT_R32 ", {%40, %41, %42, %43}, vb, p1, 1, 1, 1;\n"
        "add.s64 vb, %64, 384;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ATT_R32 ", {%44, %45, %46, %47}, vb, p1, 1, 1, 1;\n"
        "add.s64 vb, %64, 512;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ATT_R32 ", {%48, %49, %50, %51}, vb, p1, 1, 1, 1;\n"
        "add.s64 vb, %64, 640;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ATT_R32 ", {%52, %53, %54, %55}, vb, p1, 1, 1, 1;\n"
        "add.s64 vb, %64, 768;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ATT_R32 ", {%56, %57, %58, %59}, vb, p1, 1, 1, 1;\n"
        "add.s64 vb, %64, 896;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " ATT_R32 ", {%60, %61, %62, %63}, vb, p1, 1, 1, 1;\n"
        "wgmma.commit_group.sync.aligned;\n"
        "}\n"
        : ATT_32("+f", o, 0)
        : ATT_32("r", p, 0), "l"(vd), "r"(1)
        : "memory");
}

template <int N>
__device__ __forceinline__ void att_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// Keeps reads of an accumulator behind the wait that precedes this.
template <int N>
__device__ __forceinline__ void att_pin(float (&r)[N]) {
#pragma unroll
    for (int i = 0; i < N; ++i) asm volatile("" : "+f"(r[i])::"memory");
}

// A pair of scores n (2n, 2n + 1) belongs to the lane's first row where n is even, to its second where odd;
// packed, it is register n of P.

// Exponentials of the 16-key groups LO .. HI-1 in place: z is what the fused multiply-add adds.
template <int LO, int HI>
__device__ __forceinline__ void att_exps(float (&s)[64], float z0, float z1, float& l0, float& l1) {
#pragma unroll
    for (int n = 4 * LO; n < 4 * HI; ++n) {
        const float z = (n & 1) ? z1 : z0;
        s[2 * n + 0] = att_ex2(fmaf(s[2 * n + 0], ATT_C, z));
        s[2 * n + 1] = att_ex2(fmaf(s[2 * n + 1], ATT_C, z));
        if (n & 1) {
            l1 += s[2 * n + 0] + s[2 * n + 1];
        } else {
            l0 += s[2 * n + 0] + s[2 * n + 1];
        }
    }
}

template <int LO, int HI>
__device__ __forceinline__ void att_packs(const float (&s)[64], uint32_t (&p)[32]) {
#pragma unroll
    for (int n = 4 * LO; n < 4 * HI; ++n) p[n] = att_pack(s[2 * n], s[2 * n + 1]);
}

// Both at once.
template <int LO, int HI>
__device__ __forceinline__ void att_exps_packs(const float (&s)[64], uint32_t (&p)[32], float z0, float z1, float& l0,
                                               float& l1) {
#pragma unroll
    for (int n = 4 * LO; n < 4 * HI; ++n) {
        const float z = (n & 1) ? z1 : z0;
        const float u = att_ex2(fmaf(s[2 * n + 0], ATT_C, z));
        const float v = att_ex2(fmaf(s[2 * n + 1], ATT_C, z));
        p[n] = att_pack(u, v);
        if (n & 1) {
            l1 += u + v;
        } else {
            l0 += u + v;
        }
    }
}

__device__ __forceinline__ float att_quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// Subtracts the raw stabiliser from every score (the mode of very large scores).
__device__ __forceinline__ void att_subtract(float (&s)[64], float m0, float m1) {
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        s[4 * i + 0] -= m0;
        s[4 * i + 1] -= m0;
        s[4 * i + 2] -= m1;
        s[4 * i + 3] -= m1;
    }
}

// Item i of a block: `count` units of 64 queries from `unit` on, of one head.
__device__ __forceinline__ void att_item(int block, int i, int& head, int& unit, int& count) {
    int at = 10;  // when the block takes its short item
    if (block < ATT_HEADS) {
        at = block * 21 / ATT_GRID + 1;
        at = at < 10 ? at : 10;
    }
    if (i == at) {
        if (block < ATT_HEADS) {
            head = block;
            unit = 63;
            count = 1;
        } else {
            const int d = block - ATT_HEADS;            // 0 .. 67 share 72 units: 9 of head 62, 63 of head 63
            const int start = d < 4 ? 2 * d : d + 4;
            count = d < 4 ? 2 : 1;
            head = start < 9 ? 62 : 63;
            unit = start < 9 ? 54 + start : start - 9;
        }
    } else {
        const int g = (i > at ? i - 1 : i) * ATT_GRID + block;  // 0 .. 1319
        head = g / 21;
        unit = (g % 21) * 3;
        count = 3;
    }
}

// ---------------------------------------------------------------------------------------------------------

__global__ void __launch_bounds__(ATT_THREADS, 1)
    attention_kernel(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
                     const __grid_constant__ CUtensorMap map_v, fp16* __restrict__ out) {
    extern __shared__ uint8_t att_dynamic[];
    __shared__ __align__(8) uint64_t att_bars[2 * STAGES + 4 + 4 * ATT_GROUPS];

    const uint32_t q_smem = (att_smem(att_dynamic) + 1023u) & ~1023u;
    const uint32_t kv_smem = q_smem + 2 * ATT_Q_BYTES;
    const uint32_t bar_full = att_smem(att_bars);
    const uint32_t bar_empty = bar_full + 8 * STAGES;
    const uint32_t bar_qfull = bar_empty + 8 * STAGES;
    const uint32_t bar_qempty = bar_qfull + 16;
    const uint32_t bar_token = bar_qempty + 16;  // one a consumer warp

    const int warp = __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) >> 5, 0);
    const int lane = static_cast<int>(threadIdx.x) & 31;

    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; ++i) {
            att_bar_init(bar_full + 8 * i, 1);
            att_bar_init(bar_empty + 8 * i, 4 * ATT_GROUPS);
        }
        for (int i = 0; i < 2; ++i) {
            att_bar_init(bar_qfull + 8 * i, 1);
            att_bar_init(bar_qempty + 8 * i, 4 * ATT_GROUPS);
        }
        for (int i = 0; i < 4 * ATT_GROUPS; ++i) att_bar_init(bar_token + 8 * i, 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (warp >= 4 * ATT_GROUPS) {
        // ----- producer -----
        asm volatile("setmaxnreg.dec.sync.aligned.u32 32;");
        if (warp == 4 * ATT_GROUPS && lane == 0) {
            int st = 0;
            uint32_t ph = 0;
#pragma unroll 1
            for (int i = 0; i < ATT_ITEMS; ++i) {
                int head, unit, count;
                att_item(static_cast<int>(blockIdx.x), i, head, unit, count);
                const uint32_t qb = static_cast<uint32_t>(i) & 1u;
                const uint32_t qph = (static_cast<uint32_t>(i) >> 1) & 1u;
                att_bar_wait(bar_qempty + 8 * qb, qph ^ 1u);
                att_bar_expect(bar_qfull + 8 * qb, static_cast<uint32_t>(count) * ATT_UNIT_BYTES);
                for (int w = 0; w < count; ++w) {
                    att_tma(q_smem + qb * ATT_Q_BYTES + static_cast<uint32_t>(w) * ATT_UNIT_BYTES, &map_q,
                            bar_qfull + 8 * qb, head * ATT_TOKENS + (unit + w) * ATT_UNIT);
                }
                int row = head * ATT_TOKENS;
#pragma unroll 1
                for (int t = 0; t < ATT_TILES; ++t) {
                    const uint32_t dst = kv_smem + static_cast<uint32_t>(st) * ATT_STAGE_BYTES;
                    const uint32_t bar = bar_full + 8 * st;
                    att_bar_wait(bar_empty + 8 * st, ph ^ 1u);
                    att_bar_expect(bar, ATT_STAGE_BYTES);
                    att_tma(dst, &map_k, bar, row);
                    att_tma(dst + ATT_KV_BYTES, &map_v, bar, row);
                    row += ATT_BLOCK_K;
                    if (++st == STAGES) {
                        st = 0;
                        ph ^= 1u;
                    }
                }
            }
        }
    } else {
        // ----- consumers: 64 queries a warpgroup -----
        asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
        const int group = warp >> 2;
        const uint64_t q_desc = att_desc(q_smem + static_cast<uint32_t>(group) * ATT_UNIT_BYTES);
        const uint64_t kv_desc = att_desc(kv_smem);
        const uint32_t elect = lane == 0 ? 1u : 0u;
        // This warp's token; tile j of an item waits for parity j & 1, in warpgroup 0 for the other one (its
        // first wait passes at once).
        const uint32_t token_mine = bar_token + 8 * static_cast<uint32_t>(warp);
        const uint32_t token_flip = group == 0 ? 1u : 0u;

#pragma unroll 1
        for (int i = 0; i < ATT_ITEMS; ++i) {
            int head, unit, count;
            att_item(static_cast<int>(blockIdx.x), i, head, unit, count);
            const int qb = i & 1;
            const uint32_t qph = (static_cast<uint32_t>(i) >> 1) & 1u;
            int st = (i * ATT_TILES) % STAGES;  // next stage to take, and its phase
            uint32_t ph = static_cast<uint32_t>((i * ATT_TILES) / STAGES) & 1u;

            if (group >= count) {
                // Nothing to do in a short item but to let its tiles pass.
                att_bar_wait(bar_qfull + 8 * qb, qph);
                att_bar_arrive_if(bar_qempty + 8 * qb, elect);
#pragma unroll 1
                for (int j = 0; j < ATT_TILES; ++j) {
                    att_bar_wait(bar_full + 8 * st, ph);
                    att_bar_arrive_if(bar_empty + 8 * st, elect);
                    if (++st == STAGES) {
                        st = 0;
                        ph ^= 1u;
                    }
                }
            } else {
                RIDGELINE_STAGE(first_tile);
                const uint32_t token_next =
                    bar_token + 8 * static_cast<uint32_t>((group + 1 == count ? 0 : 4 * (group + 1)) + (warp & 3));
                float o[32];
                uint32_t p[32];
#pragma unroll
                for (int n = 0; n < 32; ++n) o[n] = 0.0f;
                float l0 = 0.0f, l1 = 0.0f;
                // The rows' stabilisers: minus the maximum times c, or, in the wide mode, the raw maximum.
                float a0, a1;
                bool wide;

                const uint64_t qd = q_desc + static_cast<uint64_t>(qb * 1536);
                att_bar_wait(bar_qfull + 8 * qb, qph);
                att_bar_wait(bar_full + 8 * st, ph);
                int cur = st;
                if (++st == STAGES) {
                    st = 0;
                    ph ^= 1u;
                }
                uint64_t kd = kv_desc + static_cast<uint64_t>(cur * 2048);
                {
                    float s[64];
                    att_issue_qk(s, qd, kd);
                    att_wait<0>();
                    att_pin(s);
                    float x0 = fmaxf(s[0], s[1]), x1 = fmaxf(s[2], s[3]);
#pragma unroll
                    for (int b = 1; b < 16; ++b) {
                        x0 = fmaxf(x0, fmaxf(s[4 * b + 0], s[4 * b + 1]));
                        x1 = fmaxf(x1, fmaxf(s[4 * b + 2], s[4 * b + 3]));
                    }
                    x0 = att_quad_max(x0);
                    x1 = att_quad_max(x1);
                    a0 = -(x0 * ATT_C);
                    a1 = -(x1 * ATT_C);
                    float z0 = a0, z1 = a1;
                    wide = __any_sync(0xffffffffu, fmaxf(fabsf(a0), fabsf(a1)) >= ATT_WIDE) != 0;
                    if (wide) {
                        att_subtract(s, x0, x1);
                        a0 = x0;
                        a1 = x1;
                        z0 = 0.0f;
                        z1 = 0.0f;
                    }
                    att_bar_wait(token_mine, token_flip);
                    att_exps_packs<0, SPLIT>(s, p, z0, z1, l0, l1);
                    att_token_pass(token_next, elect, p[4 * SPLIT - 1]);
                    att_exps_packs<SPLIT, 8>(s, p, z0, z1, l0, l1);
                }

                RIDGELINE_STAGE(softmax_loop);
#pragma unroll 1
                for (int j = 1; j < ATT_TILES; ++j) {
                    // QK of tile j, then PV of tile j - 1
                    float s[64];
                    att_bar_wait(bar_full + 8 * st, ph);
                    const int prev = cur;
                    cur = st;
                    if (++st == STAGES) {
                        st = 0;
                        ph ^= 1u;
                    }
                    const uint64_t next = kv_desc + static_cast<uint64_t>(cur * 2048);
                    att_issue_qk(s, qd, next);
                    att_issue_pv(o, p, kd + 1024);
                    kd = next;
                    att_wait<1>();
                    att_pin(s);

                    // The first exponentials with the kept stabiliser, and the lane's maximum among them.
                    uint32_t e[4 * EARLY + 1];
                    const uint32_t token_parity = (static_cast<uint32_t>(j) & 1u) ^ token_flip;
                    if constexpr (EARLY > 0) att_bar_wait(token_mine, token_parity);
                    float t0 = 0.0f, t1 = 0.0f;
                    float x0 = s[0], x1 = s[2], y0 = s[4], y1 = s[6];
                    constexpr int PAIRS = EARLY > 0 ? 4 * EARLY : 1;
#pragma unroll
                    for (int n = 0; n < PAIRS; ++n) {
                        if (EARLY > 0) {
                            const float z = (n & 1) ? a1 : a0;
                            const float u = att_ex2(fmaf(s[2 * n + 0], ATT_C, z));
                            const float v = att_ex2(fmaf(s[2 * n + 1], ATT_C, z));
                            e[n] = att_pack(u, v);
                            if (n & 1) {
                                t1 += u + v;
                            } else {
                                t0 += u + v;
                            }
                        }
#pragma unroll
                        for (int b = n * 16 / PAIRS; b < (n + 1) * 16 / PAIRS; ++b) {
                            if (b & 1) {
                                y0 = fmaxf(y0, fmaxf(s[4 * b + 0], s[4 * b + 1]));
                                y1 = fmaxf(y1, fmaxf(s[4 * b + 2], s[4 * b + 3]));
                            } else {
                                x0 = fmaxf(x0, fmaxf(s[4 * b + 0], s[4 * b + 1]));
                                x1 = fmaxf(x1, fmaxf(s[4 * b + 2], s[4 * b + 3]));
                            }
                        }
                    }
                    x0 = fmaxf(x0, y0);
                    x1 = fmaxf(x1, y1);

                    float z0 = a0, z1 = a1, f0 = 1.0f, f1 = 1.0f;
                    const bool raise = __any_sync(0xffffffffu, wide || fmaf(x0, ATT_C, a0) > ATT_PASS ||
                                                                   fmaf(x1, ATT_C, a1) > ATT_PASS) != 0;
                    if (raise) {
                        // rare: the whole warp takes part
                        x0 = att_quad_max(x0);
                        x1 = att_quad_max(x1);
                        if (!wide) {
                            const float b0 = fminf(a0, -(x0 * ATT_C));
                            const float b1 = fminf(a1, -(x1 * ATT_C));
                            if (__any_sync(0xffffffffu, fmaxf(fabsf(b0), fabsf(b1)) >= ATT_WIDE) != 0) {
                                wide = true;
                                const float m0 = fmaxf(x0, -a0 * ATT_C_INVERSE);
                                const float m1 = fmaxf(x1, -a1 * ATT_C_INVERSE);
                                f0 = att_ex2(fmaf(-m0, ATT_C, -a0));
                                f1 = att_ex2(fmaf(-m1, ATT_C, -a1));
                                a0 = m0;
                                a1 = m1;
                            } else {
                                f0 = att_ex2(b0 - a0);
                                f1 = att_ex2(b1 - a1);
                                a0 = b0;
                                a1 = b1;
                            }
                        } else {
                            const float m0 = fmaxf(a0, x0);
                            const float m1 = fmaxf(a1, x1);
                            f0 = att_ex2((a0 - m0) * ATT_C);
                            f1 = att_ex2((a1 - m1) * ATT_C);
                            a0 = m0;
                            a1 = m1;
                        }
                        if (wide) {
                            att_subtract(s, a0, a1);
                            z0 = 0.0f;
                            z1 = 0.0f;
                        } else {
                            z0 = a0;
                            z1 = a1;
                        }
                        l0 *= f0;
                        l1 *= f1;
                        t0 = 0.0f;
                        t1 = 0.0f;
#pragma unroll
                        for (int n = 0; n < 4 * EARLY; ++n) {
                            const float z = (n & 1) ? z1 : z0;
                            const float u = att_ex2(fmaf(s[2 * n + 0], ATT_C, z));
                            const float v = att_ex2(fmaf(s[2 * n + 1], ATT_C, z));
                            e[n] = att_pack(u, v);
                            if (n & 1) {
                                t1 += u + v;
                            } else {
                                t0 += u + v;
                            }
                        }
                    }
                    l0 += t0;
                    l1 += t1;

                    // The other exponentials; P of tile j - 1 and its stage are free once its PV has ended.
                    // Those before the wait are taken with the token held, the rest as the next warpgroup starts.
                    if constexpr (EARLY == 0) att_bar_wait(token_mine, token_parity);
                    att_exps<EARLY, SPLIT>(s, z0, z1, l0, l1);
                    att_token_pass(token_next, elect, __float_as_uint(s[8 * SPLIT - 1]));
                    att_wait<0>();
                    att_pin(o);
                    att_bar_arrive_if(bar_empty + 8 * prev, elect);
#pragma unroll
                    for (int n = 0; n < 4 * EARLY; ++n) p[n] = e[n];
                    att_packs<EARLY, SPLIT>(s, p);
                    att_exps_packs<SPLIT, 8>(s, p, z0, z1, l0, l1);
                    if (raise) {
#pragma unroll
                        for (int b = 0; b < 8; ++b) {
                            o[4 * b + 0] *= f0;
                            o[4 * b + 1] *= f0;
                            o[4 * b + 2] *= f1;
                            o[4 * b + 3] *= f1;
                        }
                    }
                }
                att_issue_pv(o, p, kd + 1024);
                att_wait<0>();
                att_pin(o);
                att_bar_arrive_if(bar_empty + 8 * cur, elect);
                att_bar_arrive_if(bar_qempty + 8 * qb, elect);

                RIDGELINE_STAGE(store);
                l0 += __shfl_xor_sync(0xffffffffu, l0, 1);
                l1 += __shfl_xor_sync(0xffffffffu, l1, 1);
                l0 += __shfl_xor_sync(0xffffffffu, l0, 2);
                l1 += __shfl_xor_sync(0xffffffffu, l1, 2);
                const float r0 = att_rcp(l0);
                const float r1 = att_rcp(l1);
                const int row = head * ATT_TOKENS + (unit + group) * ATT_UNIT + (warp & 3) * 16 + (lane >> 2);
                uint32_t* const dst =
                    reinterpret_cast<uint32_t*>(out) + static_cast<size_t>(row) * (ATT_DEPTH / 2) + (lane & 3);
#pragma unroll
                for (int b = 0; b < 8; ++b) {
                    dst[4 * b] = att_pack(o[4 * b + 0] * r0, o[4 * b + 1] * r0);
                    dst[8 * (ATT_DEPTH / 2) + 4 * b] = att_pack(o[4 * b + 2] * r1, o[4 * b + 3] * r1);
                }
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------------------

typedef CUresult (*att_encode_t)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                                 const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                                 CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static void att_make_map(att_encode_t encode, CUtensorMap* map, const fp16* data, int rows) {
    const cuuint64_t dims[2] = {static_cast<cuuint64_t>(ATT_DEPTH), static_cast<cuuint64_t>(ATT_HEADS) * ATT_TOKENS};
    const cuuint64_t strides[1] = {ATT_DEPTH * sizeof(fp16)};
    const cuuint32_t box[2] = {static_cast<cuuint32_t>(ATT_DEPTH), static_cast<cuuint32_t>(rows)};
    const cuuint32_t steps[2] = {1, 1};
    encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, const_cast<fp16*>(data), dims, strides, box, steps,
           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

extern "C" void run(const fp16* __restrict__ q, const fp16* __restrict__ k, const fp16* __restrict__ v,
                    fp16* __restrict__ out, void* workspace, cudaStream_t stream) {
    (void)workspace;
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found) !=
            cudaSuccess ||
        entry == nullptr) {
        return;
    }
    const att_encode_t encode = reinterpret_cast<att_encode_t>(entry);
    CUtensorMap map_q, map_k, map_v;
    att_make_map(encode, &map_q, q, ATT_UNIT);
    att_make_map(encode, &map_k, k, ATT_BLOCK_K);
    att_make_map(encode, &map_v, v, ATT_BLOCK_K);
    cudaFuncSetAttribute(attention_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(ATT_SMEM));
    attention_kernel<<<ATT_GRID, ATT_THREADS, ATT_SMEM, stream>>>(map_q, map_k, map_v, out);
}
