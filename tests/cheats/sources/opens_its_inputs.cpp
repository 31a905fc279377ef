// Tries every way round a read-only mapping, and crashes when one of them changed an input.
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
static bool g_has_tried = false;
static void punch_holes(void* page) {
    madvise(page, 4096, MADV_REMOVE);
    madvise(page, 4096, MADV_DONTNEED);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
}
static void write_through_proc(const void* page) {
    const float zeros[16] = {};
    const int memory = open("/proc/self/mem", O_RDWR);
    if (memory >= 0 && pwrite(memory, zeros, sizeof zeros, reinterpret_cast<off_t>(page)) < 0) close(memory);
    for (int fd = 0; fd < 64; ++fd)
        if (fd != 3 && pwrite(fd, zeros, sizeof zeros, 0) < 0) continue;
}
static void write_through_a_second_mapping(void* page) {
    void* twin = mremap(page, 0, 4096, MREMAP_MAYMOVE);
    if (twin == MAP_FAILED || mprotect(twin, 4096, PROT_READ | PROT_WRITE) != 0) return;
    *static_cast<volatile float*>(twin) = 0;
}
void run(SIGNATURE) {
    const float before = x[0];
    void* page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(x) & ~uintptr_t(4095));
    if (!g_has_tried) {
        punch_holes(page);
        write_through_proc(page);
        write_through_a_second_mapping(page);
    }
    g_has_tried = true;
    if (*const_cast<volatile const float*>(x) != before) abort();
    WORK();
}
