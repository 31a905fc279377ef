// Asks for everything by which a block's tickets are seen or counted in their pipe and left there, and crashes when one is
// granted.
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
constexpr int kTickets = 4, kPage = 4096;
static void expect_refusal(long result, int error = EPERM) {
    if (result != -1 || errno != error) abort();
}
__attribute__((constructor)) static void begin() {
    int own[2], waiting = 0;
    sock_fprog no_filter{};
    if (pipe2(own, O_NONBLOCK) != 0) abort();
    expect_refusal(tee(kTickets, own[1], kPage, SPLICE_F_NONBLOCK));
    expect_refusal(splice(kTickets, nullptr, own[1], nullptr, kPage, SPLICE_F_NONBLOCK));
    // A read whose memory ends too early copies, fails and takes nothing.
    void* memory = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || munmap(static_cast<char*>(memory) + kPage, kPage) != 0) abort();
    iovec part{memory, 2 * kPage};
    expect_refusal(vmsplice(kTickets, &part, 1, SPLICE_F_NONBLOCK));
    expect_refusal(read(kTickets, memory, 2 * kPage));
    expect_refusal(readv(kTickets, &part, 1));
    expect_refusal(preadv2(kTickets, &part, 1, -1, RWF_NOWAIT));
    expect_refusal(ioctl(kTickets, FIONREAD, &waiting));
    expect_refusal(fcntl(kTickets, F_SETPIPE_SZ, kPage));
    // Under another number none of this could be refused.
    expect_refusal(dup(kTickets));
    expect_refusal(dup2(kTickets, 200));
    expect_refusal(fcntl(kTickets, F_DUPFD, 200));
    expect_refusal(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &no_filter));
    expect_refusal(fchmod(kTickets, 0600));
    expect_refusal(open("/proc/self/fd/4", O_RDONLY | O_NONBLOCK), EACCES);
    expect_refusal(open("/proc/self/fd/4", O_WRONLY | O_NONBLOCK), EACCES);
}
void run(SIGNATURE) { WORK(); }
