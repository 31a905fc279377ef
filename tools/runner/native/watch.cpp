// A library for the Python runner. Loaded, it tells a fault's address on the runner's socket, as the native host does: a
// write to a read-only input has to be told from any other crash. Preloaded, it binds OpenMP's threads in every sandbox
// tier.

#include "fault_watch.h"
#include "thread_binding.h"

extern "C" void watch_region(uintptr_t base, size_t bytes, int read_only) {
    fault::g_regions.push_back({base, bytes, read_only != 0, 0});
}

extern "C" void watch_faults(int wire) { fault::watch(wire); }
