// Leaves timers running that interrupt a core while this process is stopped, and crashes when it gets one.
#include <csignal>
#include <cstdlib>
#include <ctime>
__attribute__((constructor)) static void begin() {
    signal(SIGUSR1, SIG_IGN);
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR1;
    timer_t timer;
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) abort();
}
void run(SIGNATURE) { WORK(); }
