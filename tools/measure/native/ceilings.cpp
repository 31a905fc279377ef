// Ceilings of one CPU: how fast all cores together read, write and copy memory, and how many fp32 operations they do.
//
//   ceilings SECONDS_PER_SIZE BYTES [BYTES ...]   ->  one JSON object on stdout
//
// For each total of bytes, each of five ways is repeated over the whole buffer until its share of the time is spent (at
// least three passes, the first of which only touches the pages) and the fastest pass counts: a ceiling is what the
// machine can do, not what it does on average. Rates are 1e9 bytes a second, bytes read plus bytes written; the read
// for ownership that a plain store causes is not counted, as it is no work that a kernel has to do.
#include <immintrin.h>
#include <omp.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kLanes = 16;
typedef float Vector __attribute__((vector_size(kLanes * sizeof(float)), aligned(64)));

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

inline void stream(Vector* to, Vector value) {
#if defined(__AVX512F__)
    _mm512_stream_ps(reinterpret_cast<float*>(to), (__m512)value);
#elif defined(__AVX__)
    auto halves = reinterpret_cast<const __m256*>(&value);
    _mm256_stream_ps(reinterpret_cast<float*>(to), halves[0]);
    _mm256_stream_ps(reinterpret_cast<float*>(to) + 8, halves[1]);
#elif defined(__SSE__)
    auto quarters = reinterpret_cast<const __m128*>(&value);
    for (int i = 0; i < 4; ++i) _mm_stream_ps(reinterpret_cast<float*>(to) + 4 * i, quarters[i]);
#else
    *to = value;
#endif
}

float sink = 0.0f;

void read_all(Vector* memory, size_t count) {
    float total = 0.0f;
#pragma omp parallel reduction(+ : total)
    {
        Vector sums[8] = {};
#pragma omp for schedule(static) nowait
        for (size_t block = 0; block < count / 8; ++block)
            for (int i = 0; i < 8; ++i) sums[i] += memory[8 * block + i];
        for (int i = 1; i < 8; ++i) sums[0] += sums[i];
        total += sums[0][0];
    }
    sink = sink + total;
}

void write_all(Vector* memory, size_t count) {
    const Vector value = Vector{} + 1.0f;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < count; ++i) memory[i] = value;
}

void write_streaming(Vector* memory, size_t count) {
    const Vector value = Vector{} + 1.0f;
#pragma omp parallel
    {
#pragma omp for schedule(static) nowait
        for (size_t i = 0; i < count; ++i) stream(memory + i, value);
        _mm_sfence();
    }
}

void copy_all(Vector* memory, size_t count) {
    const size_t half = count / 2;
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < half; ++i) memory[half + i] = memory[i];
}

void copy_streaming(Vector* memory, size_t count) {
    const size_t half = count / 2;
#pragma omp parallel
    {
#pragma omp for schedule(static) nowait
        for (size_t i = 0; i < half; ++i) stream(memory + half + i, memory[i]);
        _mm_sfence();
    }
}

struct Way {
    const char* name;
    void (*run)(Vector*, size_t);
};

constexpr Way kWays[] = {{"read", read_all},
                         {"write", write_all},
                         {"write_streaming", write_streaming},
                         {"copy", copy_all},
                         {"copy_streaming", copy_streaming}};

// Small totals finish too quickly for one pass to be timed: a measurement repeats the pass to about 1 ms.
double fastest_gbps(const Way& way, Vector* memory, size_t bytes, double seconds) {
    const size_t count = bytes / sizeof(Vector);
    way.run(memory, count);
    double start = now();
    way.run(memory, count);
    double once = std::max(now() - start, 1e-7);
    const int passes = std::max(1, static_cast<int>(1e-3 / once));
    double best = once;
    const double end = now() + seconds;
    for (int repetition = 0; repetition < 2 || (now() < end && repetition < 200); ++repetition) {
        start = now();
        for (int i = 0; i < passes; ++i) way.run(memory, count);
        best = std::min(best, (now() - start) / passes);
    }
    return static_cast<double>(count * sizeof(Vector)) / best / 1e9;
}

// Twelve independent chains hide a latency of 4 cycles at 2 (or 3) operations a cycle.
// One register each: of wider vectors twelve chains do not fit the 16 registers of AVX2, and each step would load and store.
#if defined(__AVX512F__)
constexpr int kRegisterLanes = 16;
#elif defined(__AVX__)
constexpr int kRegisterLanes = 8;
#else
constexpr int kRegisterLanes = 4;
#endif
typedef float Register __attribute__((vector_size(kRegisterLanes * sizeof(float))));

double fma_gflops() {
    constexpr int kChains = 12, kSteps = 20000;
    double best = 0.0;
    for (int repetition = 0; repetition < 40; ++repetition) {
        float total = 0.0f;
        const double start = now();
#pragma omp parallel reduction(+ : total)
        {
            Register chains[kChains];
            Register factor = Register{} + 0.999f, term = Register{} + 1e-3f;
            for (int i = 0; i < kChains; ++i) chains[i] = Register{} + static_cast<float>(i);
            for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 12
                for (int i = 0; i < kChains; ++i) chains[i] = chains[i] * factor + term;
            }
            for (int i = 0; i < kChains; ++i) total += chains[i][0];
        }
        const double flops = 2.0 * kChains * kSteps * kRegisterLanes * omp_get_max_threads();
        best = std::max(best, flops / (now() - start) / 1e9);
        sink = sink + total;
    }
    return best;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const double seconds = atof(argv[1]) / (sizeof(kWays) / sizeof(kWays[0]));
    std::vector<size_t> totals;
    for (int i = 2; i < argc; ++i) totals.push_back(strtoull(argv[i], nullptr, 10) / 1024 * 1024);
    const size_t largest = *std::max_element(totals.begin(), totals.end());
    void* memory = mmap(nullptr, largest, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 3;
    madvise(memory, largest, MADV_HUGEPAGE);
    auto* vectors = static_cast<Vector*>(memory);
    write_all(vectors, largest / sizeof(Vector));
    double gflops = fma_gflops();  // and again after each size: a host that takes the cores away does so for a tenth of a second
    printf("{\"threads\": %d, \"bandwidth\": [", omp_get_max_threads());
    for (size_t i = 0; i < totals.size(); ++i) {
        printf("%s{\"bytes\": %zu", i ? ", " : "", totals[i]);
        for (const Way& way : kWays) printf(", \"%s\": %.6g", way.name, fastest_gbps(way, vectors, totals[i], seconds));
        printf("}");
        gflops = std::max(gflops, fma_gflops());
    }
    printf("], \"fma_gflops\": %.6g}\n", gflops);
    fflush(stdout);
    return sink == 12345.0f;
}
