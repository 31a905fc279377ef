// Loaded into the Python runner: makes a fault tell its address on the runner's socket, as the native host does, because
// a write to a read-only input has to be told from any other crash. Preloaded, threads take the cores that OpenMP gives
// them in every sandbox tier.

#include "fault_watch.h"
#include "thread_binding.h"

extern "C" void watch_region(uintptr_t base, size_t bytes, int read_only) {
    fault::g_regions.push_back({base, bytes, read_only != 0, 0});
}

extern "C" void watch_faults(int wire) { fault::watch(wire); }
