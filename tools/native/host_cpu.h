// What the native host needs of a CPU: the judge's memory with guards around it, faults explained, a clock.
#pragma once

#include <omp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <cstdio>

#include "host_wire.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISON(base, size) __asan_poison_memory_region(base, size)
#define UNPOISON(base, size) __asan_unpoison_memory_region(base, size)
#else
#define POISON(base, size) ((void)0)
#define UNPOISON(base, size) ((void)0)
#endif

namespace host {

constexpr size_t kPage = 4096;
constexpr size_t kGuard = 1 << 20;  // unreadable space on both sides of a region: an overrun faults instead of passing

struct Region {
    char *base = nullptr;
    size_t bytes = 0;
    bool read_only = false;
};

inline std::vector<Region> g_regions;  // global for the signal handler alone

// Formats without the heap: a fault may have come from inside malloc.
inline void on_fault(int number, siginfo_t *info, void *context) {
    char *address = static_cast<char *>(info->si_addr);
    bool is_write = false;
#if defined(__x86_64__)
    is_write = (static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
#endif
    char line[160];
    for (size_t i = 0; i < g_regions.size(); ++i) {
        const Region &r = g_regions[i];
        if (address < r.base - kGuard || address >= r.base + r.bytes + kGuard) continue;
        bool inside = address >= r.base && address < r.base + r.bytes;
        const char *code = inside && r.read_only ? "input_written" : "crashed";
        int n = snprintf(line, sizeof line, "failed %s %d %s %zu %td\n", code, number, is_write ? "write" : "read", i,
                         address - r.base);
        say(line, static_cast<size_t>(n));
        _exit(1);
    }
    int n = snprintf(line, sizeof line, "failed crashed %d %s - %#zx\n", number, is_write ? "write" : "read",
                     reinterpret_cast<size_t>(address));
    say(line, static_cast<size_t>(n));
    _exit(1);
}

inline void watch_faults() {
    static char stack[64 << 10];
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (int number : {SIGSEGV, SIGBUS}) sigaction(number, &action, nullptr);
}

class Device {
   public:
    void open() {}

    char *map(const RegionSpec &spec) {
        size_t mapped = (spec.bytes + kPage - 1) / kPage * kPage;
        char *space = static_cast<char *>(
            mmap(nullptr, mapped + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (space == MAP_FAILED) fail("out_of_memory", "no address space for the judge's memory");
        int access = spec.read_only ? PROT_READ : PROT_READ | PROT_WRITE;
        void *base = mmap(space + kGuard, mapped, access, MAP_SHARED | MAP_FIXED, spec.fd, 0);
        if (base == MAP_FAILED) fail("out_of_memory", "cannot map the judge's memory");
        close(spec.fd);
        g_regions.push_back(Region{static_cast<char *>(base), spec.bytes, spec.read_only});
        POISON(base, spec.bytes);
        return static_cast<char *>(base);
    }

    void expose([[maybe_unused]] char *address, [[maybe_unused]] size_t bytes) { UNPOISON(address, bytes); }

    void *allocate(size_t bytes) {
        if (bytes == 0) return nullptr;
        void *space = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        if (space == MAP_FAILED) fail("out_of_memory", "cannot allocate " + std::to_string(bytes) + " bytes");
        return space;
    }

    void spoil(void *, size_t) {}  // fresh pages are zero, as in any program

    void upload(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }

    void ready_for_candidate() {
#if !defined(__SANITIZE_ADDRESS__)
        watch_faults();
#endif
    }

    void *stream() { return nullptr; }

    int threads() { return omp_get_max_threads(); }

    void start() { began_ = now_ns(); }

    int64_t stop() { return now_ns() - began_; }

    bool begin_capture() { return false; }

    bool end_capture() { return false; }

    void replay() {}

   private:
    static int64_t now_ns() {
        timespec t{};
        clock_gettime(CLOCK_MONOTONIC_RAW, &t);
        return static_cast<int64_t>(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
    }

    int64_t began_ = 0;
};

}  // namespace host
