// A seccomp filter, assembled from the kernel's own macros, without libseccomp: the launcher then builds wherever g++ works,
// and no library has to be installed.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace confine {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "confine knows the system calls of x86_64 and aarch64 only"
#endif

// Of Linux 5.0 and 5.19.
constexpr uint32_t kHandOver = 0x7fc00000u;
constexpr unsigned kNewListener = 1u << 3, kWaitKillable = 1u << 5;
constexpr uint32_t kWordBytes = 4;
constexpr int kNewestKnownCall = 469;  // file_setattr, Linux 6.17; newer calls get ENOSYS until this file places them

class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0));
    act(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, kNewestKnownCall, 0, 1));  // x32 numbers are above it too
    act(SECCOMP_RET_ERRNO | ENOSYS);
  }

  void refuse(int call, int error = EPERM) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    act(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
  }

  // Refuse `call` when (argument & mask) == value; only the low 32 bits, which is all these arguments have.
  void refuse_if(int call, int argument, uint32_t mask, uint32_t value, int error = EPERM) {
    on_argument(call, argument, mask, value, true, error);
  }

  // Refuse `call` unless (argument & mask) == value.
  void refuse_unless(int call, int argument, uint32_t mask, uint32_t value) {
    on_argument(call, argument, mask, value, false, EPERM);
  }

  // Let `read` of the descriptor `fd` through for kWordBytes alone, and of every other descriptor at once: first of all, so
  // that no read passes the whole filter.
  void read_in_words(int fd) {
    constexpr size_t kFd = offsetof(seccomp_data, args), kCount = kFd + 16;
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(SYS_read), 0, 8));
    load(kFd);
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(fd), 0, 4));
    load(kCount);
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kWordBytes, 0, 3));
    load(kCount + 4);
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1));
    act(SECCOMP_RET_ALLOW);
    act(SECCOMP_RET_ERRNO | EPERM);
  }

  // Refuse `call` when its `argument` is the descriptor `fd`.
  void refuse_descriptor(int call, int argument, int fd) { refuse_if(call, argument, ~0u, static_cast<uint32_t>(fd)); }

  // Let the guard answer `call`.
  void hand_over(int call) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    act(kHandOver);
  }

  // Refuse `call` when the pointer is not null: both of its halves.
  void refuse_pointer(int call, int argument) {
    refuse_unless(call, argument, ~0u, 0);
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 4));
    load(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument) + 4);
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0));
    act(SECCOMP_RET_ERRNO | EPERM);
    load(offsetof(seccomp_data, nr));
  }

  bool install() { return put_in_place(0) == 0; }

  // Returns the descriptor that the guard reads the calls from, or -1. A call that the guard has read is not begun again
  // after a signal, where the kernel knows how (5.19).
  int install_with_listener() {
    const int listener = put_in_place(kNewListener | kWaitKillable);
    return listener >= 0 ? listener : put_in_place(kNewListener);
  }

 private:
  int put_in_place(unsigned flags) {
    std::vector<sock_filter> whole = code_;
    whole.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    sock_fprog program{static_cast<unsigned short>(whole.size()), whole.data()};
    return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program));
  }

  void load(size_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset))); }
  void act(uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }

  void on_argument(int call, int argument, uint32_t mask, uint32_t value, bool refuse_equal, int error) {
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 5));
    load(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(argument));
    code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask));
    const unsigned char refused_equal = refuse_equal ? 0 : 1, refused_other = refuse_equal ? 1 : 0;
    code_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, refused_equal, refused_other));
    act(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
    load(offsetof(seccomp_data, nr));
  }

  std::vector<sock_filter> code_;
};

}  // namespace confine
