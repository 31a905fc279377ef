// The signal handler that tells a fault's address on the wire, in the native host and in the Python runner.
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include <vector>

#include "wire_words.h"

namespace fault {

struct Region {
    uintptr_t base = 0;
    size_t bytes = 0;
    bool read_only = false;
    size_t guard = 0;  // unreadable bytes on both sides: a fault in them is told as an offset of this region
};

// Globals for the signal handler alone.
inline std::vector<Region> g_regions;
inline int g_wire = -1;

inline bool is_write(void *context) {
#if defined(__x86_64__)
    return (static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
    return false;
#endif
}

// Formats without the heap: the fault may lie inside malloc.
inline int describe(char *line, size_t size, int number, uintptr_t address, bool writes) {
    const char *access = writes ? wire::fault::kWrite : wire::fault::kRead;
    for (size_t i = 0; i < g_regions.size(); ++i) {
        const Region &r = g_regions[i];
        if (address < r.base - r.guard || address >= r.base + r.bytes + r.guard) continue;
        // Inside a readable region only a write can fault, also on a CPU that does not tell reads from writes.
        const bool is_inside = address >= r.base && address < r.base + r.bytes;
        const char *code = is_inside && r.read_only ? wire::failure::kInputWritten : wire::failure::kCrashed;
        return snprintf(line, size, "%s %s %d %s %zu %td\n", wire::answer::kFailed, code, number, access, i,
                        static_cast<ptrdiff_t>(address - r.base));
    }
    return snprintf(line, size, "%s %s %d %s - %#zx\n", wire::answer::kFailed, wire::failure::kCrashed, number, access,
                    static_cast<size_t>(address));
}

inline void on_fault(int number, siginfo_t *info, void *context) {
    char line[160];
    const int length = describe(line, sizeof line, number, reinterpret_cast<uintptr_t>(info->si_addr), is_write(context));
    [[maybe_unused]] const ssize_t sent = write(g_wire, line, static_cast<size_t>(length));
    _exit(1);
}

// The handler has a stack of its own: the fault may be an overflow of the thread's stack.
inline void watch(int wire) {
    g_wire = wire;
    static char stack[64 << 10];
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const int number : {SIGSEGV, SIGBUS}) sigaction(number, &action, nullptr);
}

}  // namespace fault
