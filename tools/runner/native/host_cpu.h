// The native host's CPU: the judge's memory with guards around it, explained faults, a clock.
#pragma once

#include <omp.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "fault_watch.h"
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
constexpr size_t kGuard = 1 << 20;  // unreadable bytes on both sides of a region: an overrun faults

class Device {
   public:
    // A call may touch the tensors of its own set alone, and the bytes between tensors are closed.
#if defined(__SANITIZE_ADDRESS__)
    static constexpr bool kOpensASet = true;
#else
    static constexpr bool kOpensASet = false;
#endif

    void open() {}

    char *map(const RegionSpec &spec) {
        size_t mapped = (spec.bytes + kPage - 1) / kPage * kPage;
        char *space = static_cast<char *>(
            mmap(nullptr, mapped + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        if (space == MAP_FAILED) fail(wire::failure::kOutOfMemory, "no address space for the judge's memory");
        int access = spec.read_only ? PROT_READ : PROT_READ | PROT_WRITE;
        void *base = mmap(space + kGuard, mapped, access, MAP_SHARED | MAP_FIXED, spec.fd, 0);
        if (base == MAP_FAILED) fail(wire::failure::kOutOfMemory, "cannot map the judge's memory");
        close(spec.fd);
        fault::g_regions.push_back({reinterpret_cast<uintptr_t>(base), spec.bytes, spec.read_only, kGuard});
        POISON(base, spec.bytes);
        return static_cast<char *>(base);
    }

    void expose([[maybe_unused]] void *address, [[maybe_unused]] size_t bytes) { UNPOISON(address, bytes); }

    void hide([[maybe_unused]] void *address, [[maybe_unused]] size_t bytes) { POISON(address, bytes); }

    // Between unreadable bytes, as a region is; a sanitizer's build finds the rest of the last page closed too.
    void *allocate(size_t bytes) {
        if (bytes == 0) return nullptr;
        const size_t mapped = (bytes + kPage - 1) / kPage * kPage;
        const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS;
        void *space = mmap(nullptr, mapped + 2 * kGuard, PROT_NONE, anonymous | MAP_NORESERVE, -1, 0);
        if (space != MAP_FAILED)
            space = mmap(static_cast<char *>(space) + kGuard, mapped, PROT_READ | PROT_WRITE,
                         anonymous | MAP_FIXED | MAP_POPULATE, -1, 0);
        if (space == MAP_FAILED) fail(wire::failure::kOutOfMemory, "cannot allocate " + std::to_string(bytes) + " bytes");
        POISON(static_cast<char *>(space) + bytes, mapped - bytes);
        return space;
    }

    void spoil(void *, size_t) {}  // fresh pages are zero, as in any program

    void upload(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }

    void ready_for_candidate() {
#if !defined(__SANITIZE_ADDRESS__)
        fault::watch(wire::kSocket);
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
