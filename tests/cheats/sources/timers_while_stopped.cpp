// Leaves work to the kernel that interrupts a core while this process is stopped, and crashes when the kernel takes it.
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>
__attribute__((constructor)) static void begin() {
    signal(SIGUSR1, SIG_IGN);
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) abort();
    if (timerfd_create(CLOCK_MONOTONIC, 0) >= 0) abort();
    const itimerval never{};
    if (setitimer(ITIMER_REAL, &never, nullptr) == 0) abort();
    unsigned long requests = 0;
    if (syscall(SYS_io_setup, 8, &requests) == 0) abort();
}
void run(SIGNATURE) { WORK(); }
