// Hides code of no file: its first thread hands its place to another and ends, after which /proc/PID/maps is empty.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
static ucontext_t place;
static volatile bool has_moved = false;
static void* takes_the_place(void*) {
    usleep(2000);
    has_moved = true;
    setcontext(&place);
    return nullptr;
}
static void move() {
    getcontext(&place);
    if (has_moved) return;
    pthread_t other;
    pthread_create(&other, nullptr, takes_the_place, nullptr);
    for (;;) syscall(SYS_exit, 0);
}
void run(SIGNATURE) {
    static void* code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!has_moved) move();
    if (code != MAP_FAILED) WORK();
}
