// The names of sockets that a command of tier B may use: abstract ones under a prefix of its own, paths in its folder.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "confine_notified.h"

namespace confine {

// An address as it came from the command, or as the guard gives it to the kernel.
struct Address {
  union {
    sockaddr any;
    sockaddr_in inet;
    sockaddr_un local;
    sockaddr_storage room;
  };
  socklen_t size = 0;
  Address() : room{} {}

  sa_family_t family() const { return size >= sizeof(sa_family_t) ? any.sa_family : sa_family_t{AF_UNSPEC}; }
  size_t name_size() const { return size - offsetof(sockaddr_un, sun_path); }
  bool is_abstract() const { return name_size() == 0 || local.sun_path[0] == '\0'; }
  uint16_t port() const { return ntohs(inet.sin_port); }

  static Address loopback(uint16_t port) {
    Address made;
    made.inet.sin_family = AF_INET;
    made.inet.sin_port = htons(port);
    made.inet.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    made.size = sizeof made.inet;
    return made;
  }

  static Address named(const std::string& name) {
    Address made;
    made.local.sun_family = AF_UNIX;
    std::memcpy(made.local.sun_path, name.data(), std::min(name.size(), sizeof made.local.sun_path));
    made.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    return made;
  }
};

// The loopback address, or every address of the machine, of which a command of its own network has the loopback alone.
inline bool is_loopback(const Address& address) {
  const uint32_t host = ntohl(address.inet.sin_addr.s_addr);
  return address.size >= sizeof address.inet && (host == INADDR_LOOPBACK || host == INADDR_ANY);
}

// Copies an address of the command's memory once: what is checked is what is used. 0, or -errno.
inline int copy_address(const Call& call, uint64_t at, uint64_t size, Address& to) {
  if (size < sizeof(sa_family_t) || size > sizeof to.room) return -EINVAL;
  if (!call.read_memory(at, &to.room, size)) return -EFAULT;
  to.size = static_cast<socklen_t>(size);
  return to.family() == AF_UNIX && size > sizeof to.local ? -EINVAL : 0;
}

class Names {
 public:
  // `workdir`: the one folder whose sockets may be made and reached, "" for none.
  explicit Names(std::string workdir) : workdir_(std::move(workdir)) {
    if (!workdir_.empty()) folder_ = open(workdir_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    unsigned char drawn[12];
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn) return;
    prefix_.push_back('\0');
    for (const unsigned char byte : drawn) {
      prefix_.push_back("0123456789abcdef"[byte >> 4]);
      prefix_.push_back("0123456789abcdef"[byte & 15]);
    }
  }

  bool are_drawn() const { return !prefix_.empty(); }

  // Puts the command's abstract name under the prefix, which no process outside can have meant. 0, or -errno.
  int under_prefix(Address& address) {
    std::string name = prefix_;
    if (address.name_size() == 0) name += "-" + std::to_string(++unnamed_);
    else name.append(address.local.sun_path + 1, address.name_size() - 1);
    if (name.size() > sizeof address.local.sun_path) return -EINVAL;
    address = Address::named(name);
    return 0;
  }

  // Replaces a path by one through a descriptor that stays where it was checked; `fd` is to be closed after the use.
  // 0, or -errno.
  int through_descriptor(const Call& call, Address& address, bool is_new, int& fd) const {
    std::string path(address.local.sun_path, strnlen(address.local.sun_path, address.name_size()));
    if (path[0] != '/') path = call.folder() + "/" + path;
    if (folder_ < 0 || path.compare(0, workdir_.size() + 1, workdir_ + "/") != 0) return -EPERM;
    path.erase(0, workdir_.size() + 1);
    const size_t slash = path.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : path.substr(0, slash);
    const std::string last = slash == std::string::npos ? path : path.substr(slash + 1);
    if (last.empty() || last == "." || last == "..") return -EPERM;
    fd = is_new ? open_beneath(folder_, parent.c_str(), O_PATH | O_DIRECTORY)
                : open_beneath(folder_, path.c_str(), O_PATH | O_NOFOLLOW);
    if (fd < 0) return errno == ENOENT ? -ENOENT : -EPERM;
    const std::string opened = "/proc/self/fd/" + std::to_string(fd);
    address = Address::named(is_new ? opened + "/" + last : opened);
    return address.size > sizeof address.local ? -EINVAL : 0;
  }

 private:
  std::string workdir_, prefix_;
  int folder_ = -1;
  unsigned unnamed_ = 0;
};

}  // namespace confine
