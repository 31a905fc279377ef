// A system call that the kernel hands to the guard: who made it, with what, and the guard's answer.
//
// Structures and numbers that old kernel headers lack are spelled out. Nothing here lets a call go on in the kernel with
// memory that its maker could still change, but `let_go_on`, which is for calls that Landlock judges.
#pragma once

#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "confine_seccomp.h"
#include "confine_tree.h"
#include "confine_usage.h"

namespace confine {

struct Notified {  // struct seccomp_notif
  uint64_t id;
  uint32_t pid, flags;
  seccomp_data data;
};

struct Answer {  // struct seccomp_notif_resp
  uint64_t id;
  int64_t value;
  int32_t error;
  uint32_t flags;
};

struct AddedDescriptor {  // struct seccomp_notif_addfd
  uint64_t id;
  uint32_t flags, source, target, target_flags;
};

constexpr unsigned long kReceive = _IOWR('!', 0, Notified), kSend = _IOWR('!', 1, Answer),
                        kIsValid = _IOW('!', 2, uint64_t), kAddDescriptor = _IOW('!', 3, AddedDescriptor);
constexpr uint32_t kGoOn = 1, kAddAndSend = 2;

// The sizes that the kernel copies must be those above: a newer kernel may have longer ones.
inline bool sizes_are_known() {
  seccomp_notif_sizes sizes{};
  if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0) return false;
  return sizes.seccomp_notif == sizeof(Notified) && sizes.seccomp_notif_resp == sizeof(Answer);
}

class Call {
 public:
  Call(int listener, const Notified& notified) : listener_(listener), notified_(notified) {}

  int number() const { return notified_.data.nr; }
  uint64_t argument(int i) const { return notified_.data.args[i]; }
  int word(int i) const { return static_cast<int>(argument(i)); }
  uint64_t id() const { return notified_.id; }
  pid_t thread() const { return static_cast<pid_t>(notified_.pid); }

  // False: its maker is gone, and its number may be another's.
  bool is_waiting() const { return ioctl(listener_, kIsValid, &notified_.id) == 0; }

  // Sends the one answer, -errno for a failure. False: a signal came first, and the call begins again or is gone.
  bool answer(int64_t result) const {
    Answer reply{notified_.id, result < 0 ? 0 : result, result < 0 ? static_cast<int32_t>(result) : 0, 0};
    return ioctl(listener_, kSend, &reply) == 0;
  }

  void let_go_on() const {
    Answer reply{notified_.id, 0, 0, kGoOn};
    ioctl(listener_, kSend, &reply);
  }

  void answer_with(int fd, bool close_on_exec) const {
    AddedDescriptor added{notified_.id, kAddAndSend, static_cast<uint32_t>(fd), 0,
                          close_on_exec ? static_cast<uint32_t>(O_CLOEXEC) : 0};
    if (ioctl(listener_, kAddDescriptor, &added) < 0) answer(-errno);
  }

  // Copies `size` bytes of its maker's memory; what was read counts only while the call waits.
  bool read_memory(uint64_t address, void* to, size_t size) const {
    const iovec here{to, size}, there{reinterpret_cast<void*>(address), size};  // NOLINT
    return process_vm_readv(thread(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(size) && is_waiting();
  }

  // A path of its maker's memory, "" when it cannot be read. Read in pieces that end with a page.
  std::string read_path(uint64_t address) const {
    std::string path;
    while (path.size() < 4096) {
      char piece[256];
      const size_t size = sizeof piece - address % sizeof piece;
      if (!read_memory(address, piece, size)) return {};
      const size_t length = strnlen(piece, size);
      path.append(piece, length);
      if (length < size) return path;
      address += size;
    }
    return {};
  }

  // The process that its thread belongs to, 0 when it is gone.
  pid_t process() const {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/status", thread());
    const auto found = static_cast<pid_t>(field_of(read_small(path), "\nTgid:"));
    return is_waiting() ? found : 0;
  }

  bool stat_descriptor(int fd, struct stat& info) const {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", thread(), fd);
    return stat(path, &info) == 0 && is_waiting();
  }

  std::string folder() const {
    char path[64], found[4096];
    std::snprintf(path, sizeof path, "/proc/%d/cwd", thread());
    const ssize_t size = readlink(path, found, sizeof found);
    return size > 0 && is_waiting() ? std::string(found, static_cast<size_t>(size)) : std::string();
  }

 private:
  int listener_;
  Notified notified_;
};

// Opens below a folder, never out of it: no link is followed.
inline int open_beneath(int folder, const char* path, uint64_t flags) {
  constexpr uint64_t kNoOtherMount = 1, kNoMagicLinks = 2, kNoLinks = 4, kBeneath = 8;
  const struct {
    uint64_t flags, mode, resolve;
  } how{flags | O_CLOEXEC, 0, kNoOtherMount | kNoMagicLinks | kNoLinks | kBeneath};
  return static_cast<int>(syscall(kOpenat2, folder, path, &how, sizeof how));
}

}  // namespace confine
