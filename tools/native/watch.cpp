// Loaded into the Python runner: makes a fault tell its address on the runner's socket, as the native host does, because
// a write to a read-only input has to be told from any other crash.

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

struct Region {
    uintptr_t base;
    size_t bytes;
    int read_only;
};

constexpr size_t kMost = 16;
Region g_regions[kMost];  // global for the signal handler alone
size_t g_count = 0;
int g_wire = -1;

void on_fault(int number, siginfo_t *info, void *context) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
    bool is_write = false;
#if defined(__x86_64__)
    is_write = (static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
    (void)context;
#endif
    const char *access = is_write ? "write" : "read";
    char line[160];
    int length = snprintf(line, sizeof line, "failed crashed %d %s - %#zx\n", number, access, size_t(address));
    for (size_t i = 0; i < g_count; ++i) {
        if (address < g_regions[i].base || address >= g_regions[i].base + g_regions[i].bytes) continue;
        const char *code = g_regions[i].read_only && is_write ? "input_written" : "crashed";
        length = snprintf(line, sizeof line, "failed %s %d %s %zu %zu\n", code, number, access, i,
                          size_t(address - g_regions[i].base));
    }
    [[maybe_unused]] const ssize_t sent = write(g_wire, line, size_t(length));
    _exit(1);
}

}  // namespace

extern "C" void watch_region(uintptr_t base, size_t bytes, int read_only) {
    if (g_count < kMost) g_regions[g_count++] = {base, bytes, read_only};
}

extern "C" void watch_faults(int wire) {
    g_wire = wire;
    static char stack[64 << 10];
    stack_t alternate{};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    const int fatal[] = {SIGSEGV, SIGBUS};
    for (const int number : fatal) sigaction(number, &action, nullptr);
}
