// Appended to every source of interface `torch`: what the runner calls from Python. The header names it; `forward` is
// the candidate's. `watch` makes a fault tell its address on the runner's socket, as the native host does, because a
// write to a read-only input has to be told from any other crash.

#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>

#include <tuple>
#include <vector>

namespace ridgeline_binding {

struct Region {
  uintptr_t base;
  size_t bytes;
  bool read_only;
};

inline std::vector<Region> regions;  // global for the signal handler alone
inline int wire = -1;

inline void on_fault(int number, siginfo_t *info, void *context) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(info->si_addr);
  bool is_write = false;
#if defined(__x86_64__)
  is_write = (static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#endif
  const char *access = is_write ? "write" : "read";
  char line[160];
  int length = snprintf(line, sizeof line, "failed crashed %d %s - %#zx\n", number, access, size_t(address));
  for (size_t i = 0; i < regions.size(); ++i) {
    if (address < regions[i].base || address >= regions[i].base + regions[i].bytes) continue;
    const char *code = regions[i].read_only && is_write ? "input_written" : "crashed";
    length = snprintf(line, sizeof line, "failed %s %d %s %zu %zu\n", code, number, access, i,
                      size_t(address - regions[i].base));
  }
  [[maybe_unused]] const ssize_t sent = write(wire, line, size_t(length));
  _exit(1);
}

inline void watch(int socket, const std::vector<std::tuple<uintptr_t, size_t, bool>> &mapped) {
  wire = socket;
  for (const auto &[base, bytes, read_only] : mapped) regions.push_back({base, bytes, read_only});
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

}  // namespace ridgeline_binding

PYBIND11_MODULE(TORCH_EXTENSION_NAME, ridgeline_module) {
  ridgeline_module.def("forward", &forward, pybind11::call_guard<pybind11::gil_scoped_release>());
  ridgeline_module.def("watch", &ridgeline_binding::watch);
}
