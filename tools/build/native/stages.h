// Clocks of RIDGELINE_STAGE on a CPU, in a profile's build alone.
//
// A thread is in one stage at a time: entering one leaves the one before, and the end of a block goes back to it. A
// stage that is entered inside a parallel region counts a thread's share of the team; one entered outside counts whole,
// since the other threads wait. So the milliseconds of all stages are at most those of the call.
#include <omp.h>
#include <stdio.h>
#include <time.h>

#include <atomic>
#include <type_traits>

namespace ridgeline_stages {

constexpr unsigned kSlots = 1024, kNone = kSlots;  // tools/build/stages.py computes the same slots

constexpr unsigned slot_of(const char *name) {
    unsigned hash = 2166136261u;  // FNV-1a
    for (; *name != '\0'; ++name)
        if (*name != '"') hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
    return hash % kSlots;
}

inline std::atomic<double> g_ticks[kSlots];

struct Current {
    unsigned slot = kNone;
    double weight = 0;
    unsigned long long since = 0;
};
inline thread_local Current t_current;

inline unsigned long long ticks() {
    unsigned low, high;
    asm volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");  // what came before has ended
    return static_cast<unsigned long long>(high) << 32 | low;
}

inline double now_ms() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

// Not inlined: the kernel's code stays as it is but for calls, and no line of it is charged with this loop.
[[gnu::noinline]] inline void enter(unsigned slot, double weight) {
    Current &current = t_current;
    const unsigned long long at = ticks();
    if (current.slot < kSlots)
        g_ticks[current.slot].fetch_add(static_cast<double>(at - current.since) * current.weight, std::memory_order_relaxed);
    current = {slot, weight, ticks()};
}

[[gnu::noinline]] inline Current begin(unsigned slot) {
    const Current outer = t_current;
    enter(slot, omp_in_parallel() ? 1.0 / omp_get_num_threads() : 1.0);
    return outer;
}

class Scope {
   public:
    explicit Scope(unsigned slot) : outer_(begin(slot)) {}
    ~Scope() { enter(outer_.slot, outer_.weight); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

   private:
    Current outer_;
};

inline void begin_call(void *) {}
inline void end_call() {}

// Begins a new table where `calls` is 0; prints what each stage took in one of `calls` calls.
inline void table(int calls) {
    static unsigned long long began_ticks;
    static double began_ms;
    const double ticks_a_ms = static_cast<double>(ticks() - began_ticks) / (now_ms() - began_ms);
    for (unsigned slot = 0; slot < kSlots; ++slot) {
        const double taken = g_ticks[slot].exchange(0);
        if (calls > 0 && taken > 0) printf("stage %u %.9f\n", slot, taken / ticks_a_ms / calls);
    }
    fflush(stdout);
    began_ticks = ticks();
    began_ms = now_ms();
}

}  // namespace ridgeline_stages
