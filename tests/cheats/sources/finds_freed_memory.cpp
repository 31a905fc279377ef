// Looks for another process's results in memory that it has just been given, and crashes when it finds any.
#include <cstdlib>
#include <sys/mman.h>
static bool g_has_looked = false;
static void look(size_t bytes) {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    for (size_t i = 0; i < bytes / sizeof(long); ++i)
        if (static_cast<long*>(memory)[i] != 0) abort();
    munmap(memory, bytes);
}
void run(SIGNATURE) {
    for (int i = 0; i < 4 && !g_has_looked; ++i) look(32 << 20);
    g_has_looked = true;
    WORK();
}
