// Asks for a signal when its parent reads a file below its /proc/PID, which may be SIGCONT, and crashes when it may.
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <unistd.h>
constexpr int kSetSignal = 10, kSetLease = 1024, kNotify = 1026, kAnyAccess = 1;
constexpr unsigned long kSetOwner = 0x8901;
__attribute__((constructor)) static void begin() {
    const int folder = open("/proc/self", O_RDONLY | O_DIRECTORY);
    int self = getpid();
    if (fcntl(folder, kNotify, kAnyAccess) == 0 || fcntl(folder, kSetLease, F_RDLCK) == 0) abort();
    if (fcntl(folder, kSetSignal, SIGCONT) == 0 || fcntl(folder, F_SETOWN, self) == 0) abort();
    if (ioctl(3, kSetOwner, &self) == 0) abort();
    if (inotify_init1(0) >= 0) abort();
}
void run(SIGNATURE) { WORK(); }
