// Sockets between the processes of one command of tier B, and nobody else's: the guard makes, names and connects them.
//
// The command's filter hands socket, bind, listen and connect to the guard. The guard makes each socket itself and keeps a
// copy until the socket is connected, so it needs no right to take descriptors out of the command (containers refuse
// pidfd_getfd). It copies an address once, decides, and uses its own copy: the command's memory is not read again.
//
//   AF_UNIX  abstract names under a prefix drawn for this command; paths of sockets in its working folder
//   AF_INET  TCP on 127.0.0.1, to ports that this command bound; the guard keeps a bound port taken to the end
//
// With a GPU the opens of files are handed over too. A driver writes below its own /proc/PID (its threads' names), and a
// Landlock rule can name the folder of the first process alone. The guard opens these files; Landlock judges all others.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <list>
#include <string>
#include <vector>

#include "confine_names.h"
#include "confine_notified.h"
#include "confine_seccomp.h"
#include "confine_tree.h"

namespace confine {

class Relay {
 public:
  // `listener`: what the kernel hands calls over by. Closed, each such call is refused as unknown.
  Relay(const std::string& workdir, int listener) : listener_(listener), names_(workdir) {
    if (listener_ < 0 || (names_.are_drawn() && sizes_are_known())) return;
    close(listener_);
    listener_ = -1;
  }

  int descriptor() const { return listener_; }
  bool has_waiting() const { return !waiting_.empty(); }

  // Answers every call that is there, and those that waited for a connection.
  void serve() {
    pollfd ready{listener_, POLLIN, 0};
    for (size_t i = 0; i < kMostAtOnce && poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0; ++i) {
      Notified notified{};
      if (ioctl(listener_, kReceive, &notified) != 0) break;
      answer(Call(listener_, notified));
    }
    waiting_.remove_if([this](const Waiting& each) { return is_over(each); });
  }

 private:
  struct Socket {
    int fd, family;
    dev_t device;
    ino_t inode;
    uint16_t port;  // bound, else 0
  };
  struct Waiting {
    Call call;
    Socket socket;  // with a descriptor of its own
    Address address;
    int opened;  // what a path of `address` goes through, or -1
  };
  static constexpr size_t kMostSockets = 512, kMostWaiting = 64, kMostAtOnce = 64;

  void answer(const Call& call) {
    switch (call.number()) {
      case SYS_socket: return make(call);
      case SYS_listen: return listen_on(call);
      case SYS_connect: return begin_connection(call);
      case SYS_bind: call.answer(bind_one(call)); return;
      case SYS_kill: call.answer(signal_process(call)); return;
      case SYS_tgkill: call.answer(signal_own_thread(call)); return;
      default: return open_file(call);
    }
  }

  // Sends a signal to a process of this command, where Landlock does not keep signals in. Its descriptor is opened before
  // it is looked at: the number may become another's.
  static int signal_process(const Call& call) {
    const pid_t pid = call.word(0);
    const int target = pid > 0 ? static_cast<int>(syscall(kPidfdOpen, pid, 0)) : -1;
    if (target < 0) return pid > 0 ? -errno : -EPERM;
    const bool is_sent = is_of_command(pid) && syscall(kPidfdSendSignal, target, call.word(1), nullptr, 0) == 0;
    close(target);
    return is_sent ? 0 : -EPERM;
  }

  static int signal_own_thread(const Call& call) {
    const pid_t process = call.process();
    if (process == 0 || call.word(0) != process) return -EPERM;
    return syscall(SYS_tgkill, process, call.word(1), call.word(2)) == 0 ? 0 : -errno;
  }

  static bool is_of_command(pid_t pid) {
    bool is_whole = true;
    const std::vector<pid_t> family = children_of(getpid(), is_whole);
    return std::find(family.begin(), family.end(), pid) != family.end();
  }

  void make(const Call& call) {
    const int family = call.word(0), type = call.word(1) & 0xf, protocol = call.word(2);
    const bool is_stream = type == SOCK_STREAM;
    const bool is_local = family == AF_UNIX && (is_stream || type == SOCK_SEQPACKET) && protocol <= 1;
    const bool is_tcp = family == AF_INET && is_stream && (protocol == 0 || protocol == IPPROTO_TCP);
    if (!is_local && !is_tcp) {
      call.answer(family == AF_INET6 ? -EAFNOSUPPORT : -EPERM);
      return;
    }
    forget_oldest();
    const int fd = socket(family, type | SOCK_CLOEXEC | (call.word(1) & SOCK_NONBLOCK), 0);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
      call.answer(-errno);
      return;
    }
    sockets_.push_back({fd, family, info.st_dev, info.st_ino, 0});
    call.answer_with(fd, (call.word(1) & SOCK_CLOEXEC) != 0);
  }

  // Sockets that are named and never connected, and those closed before they were.
  void forget_oldest() {
    if (sockets_.size() < kMostSockets) return;
    const auto unbound = std::find_if(sockets_.begin(), sockets_.end(), [](const Socket& s) { return s.port == 0; });
    forget(unbound != sockets_.end() ? unbound : sockets_.begin());
  }

  void forget(std::list<Socket>::iterator which) {
    close(which->fd);
    sockets_.erase(which);
  }

  // The guard's copy of a descriptor of the command; a descriptor that the command exchanges meanwhile only names
  // another of these.
  std::list<Socket>::iterator find(const Call& call) {
    struct stat info;
    if (!call.stat_descriptor(call.word(0), info) || !S_ISSOCK(info.st_mode)) return sockets_.end();
    return std::find_if(sockets_.begin(), sockets_.end(), [&](const Socket& s) {
      return s.inode == info.st_ino && s.device == info.st_dev;
    });
  }

  // Copies the address of a bind or connect; 0, or -errno where its family is not the socket's.
  static int address_of(const Call& call, const Socket& socket, Address& address) {
    const int copied = copy_address(call, call.argument(1), call.argument(2) & 0xffffffff, address);
    if (copied != 0) return copied;
    return address.family() == socket.family ? 0 : -EPERM;
  }

  int bind_one(const Call& call) {
    const auto socket = find(call);
    Address address;
    if (socket == sockets_.end()) return -EPERM;
    if (const int error = address_of(call, *socket, address); error != 0) return error;
    if (socket->family == AF_INET) return is_loopback(address) ? bind_port(*socket, address.port()) : -EPERM;
    int fd = -1;
    const int error = address.is_abstract() ? names_.under_prefix(address)
                                            : names_.through_descriptor(call, address, true, fd);
    const int result = error != 0 ? error : bind(socket->fd, &address.any, address.size) == 0 ? 0 : -errno;
    if (fd >= 0) close(fd);
    return result;
  }

  // A port that the kernel chose is given back when the command shuts the socket down; one that was asked for is kept.
  static int bind_port(Socket& bound, uint16_t port) {
    const bool is_chosen = port == 0;
    for (int attempt = 0; attempt < 16; ++attempt) {
      if (is_chosen) port = free_port();
      const Address address = Address::loopback(port);
      if (port != 0 && bind(bound.fd, &address.any, address.size) == 0) {
        bound.port = port;
        return 0;
      }
      if (!is_chosen || errno != EADDRINUSE) break;
    }
    return -errno;
  }

  // A port that was free a moment ago, 0 without one.
  static uint16_t free_port() {
    Address address = Address::loopback(0);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_found = fd >= 0 && bind(fd, &address.any, address.size) == 0 &&
                          getsockname(fd, &address.any, &address.size) == 0;
    if (fd >= 0) close(fd);
    return is_found ? address.port() : 0;
  }

  // A socket that has no name yet would listen on every address of the machine. The end of a unix socket must be seen, so
  // no copy stays; a port is kept taken.
  void listen_on(const Call& call) {
    const auto socket = find(call);
    int error = socket == sockets_.end() ? -EPERM : 0;
    if (error == 0 && socket->family == AF_INET && socket->port == 0) error = bind_port(*socket, 0);
    if (error == 0 && listen(socket->fd, call.word(1)) != 0) error = -errno;
    if (call.answer(error) && error == 0 && socket->family == AF_UNIX) forget(socket);
  }

  void begin_connection(const Call& call) {
    const auto socket = find(call);
    Address address;
    int error = socket == sockets_.end() ? -EPERM : address_of(call, *socket, address), opened = -1;
    if (error == 0 && socket->family == AF_INET) error = reach_port(address);
    else if (error == 0 && address.is_abstract()) error = names_.under_prefix(address);
    else if (error == 0) error = names_.through_descriptor(call, address, false, opened);
    if (error == 0 && waiting_.size() >= kMostWaiting) error = -EAGAIN;
    if (error != 0) {
      call.answer(error);
      if (opened >= 0) close(opened);
      return;
    }
    Waiting begun{call, *socket, address, opened};
    begun.socket.fd = fcntl(socket->fd, F_DUPFD_CLOEXEC, 0);
    if (!is_over(begun)) waiting_.push_back(begun);
  }

  // Nothing listens behind a port that no process of this command bound.
  int reach_port(Address& address) const {
    if (!is_loopback(address)) return -EPERM;
    for (const Socket& socket : sockets_)
      if (socket.port != 0 && socket.port == address.port()) {
        address = Address::loopback(address.port());
        return 0;
      }
    return -ECONNREFUSED;
  }

  // Tries a connection without waiting. Where the command's own call would wait, it is tried again, as the guard must
  // look at the other calls meanwhile. A copy is kept of what is not connected: the command may try again.
  bool is_over(const Waiting& each) {
    if (each.call.is_waiting()) {
      const int status = fcntl(each.socket.fd, F_GETFL);
      fcntl(each.socket.fd, F_SETFL, status | O_NONBLOCK);
      int error = connect_now(each);
      if (error == EINPROGRESS) error = connect_now(each);  // over the loopback it is mostly there already
      fcntl(each.socket.fd, F_SETFL, status);
      const bool is_under_way = error == EINPROGRESS || error == EALREADY;
      if ((is_under_way || error == EAGAIN) && (status & O_NONBLOCK) == 0) return false;
      if (error == EISCONN) error = 0;  // begun again after a signal: no copy stays of what its command knows connected
      if (each.call.answer(is_under_way ? -EINPROGRESS : -error) && (error == 0 || is_under_way))
        forget_connected(each.socket);
    }
    close(each.socket.fd);
    if (each.opened >= 0) close(each.opened);
    return true;
  }

  static int connect_now(const Waiting& each) {
    return connect(each.socket.fd, &each.address.any, each.address.size) == 0 ? 0 : errno;
  }

  // The end of a connected socket must be seen by the other side, so no copy stays.
  void forget_connected(const Socket& connected) {
    const auto which = std::find_if(sockets_.begin(), sockets_.end(), [&](const Socket& s) {
      return s.inode == connected.inode && s.device == connected.device;
    });
    if (which != sockets_.end()) forget(which);
  }

  // Opens a file of /proc/PID of a process of this command; Landlock judges every other open.
  void open_file(const Call& call) {
#if defined(__x86_64__)
    const int first = call.number() == SYS_open ? 0 : 1;
#else
    const int first = 1;
#endif
    const std::string path = call.read_path(call.argument(first));
    const auto flags = static_cast<uint64_t>(call.word(first + 1)) & (O_ACCMODE | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC);
    std::string file;
    const int folder = (call.word(first + 1) & O_PATH) == 0 ? folder_of(call, path, file) : -1;
    if (folder < 0) return call.let_go_on();
    const std::string last = file.substr(file.rfind('/') + 1);
    const bool may_open = (flags & O_ACCMODE) == O_RDONLY ? last != "mem" : last == "comm";
    const int opened = may_open ? open_beneath(folder, file.c_str(), flags & ~static_cast<uint64_t>(O_CLOEXEC)) : -1;
    const int error = may_open ? errno : EACCES;
    close(folder);
    if (opened < 0) {
      call.answer(-error);
      return;
    }
    call.answer_with(opened, (flags & O_CLOEXEC) != 0);
    close(opened);
  }

  // Opens the folder /proc/PID that `path` leads through and sets what is named below it; -1 where `path` is another, or
  // the process is none of this command. Opened before it is looked at: the number may become another's.
  static int folder_of(const Call& call, const std::string& path, std::string& file) {
    if (path.compare(0, 6, "/proc/") != 0) return -1;
    const size_t slash = std::min(path.find('/', 6), path.size());
    const std::string whose = path.substr(6, slash - 6);
    const bool is_thread = whose == "thread-self", is_own = is_thread || whose == "self";
    const pid_t pid = is_own ? call.process() : static_cast<pid_t>(std::atoi(whose.c_str()));
    if (pid <= 1) return -1;
    const std::string name = "/proc/" + std::to_string(pid);
    const int folder = open(name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0 && !is_of_command(pid)) {
      close(folder);
      return -1;
    }
    file = is_thread ? "task/" + std::to_string(call.thread()) : ".";
    if (slash + 1 < path.size()) file += path.substr(slash);
    return folder;
  }

  int listener_;
  Names names_;
  std::list<Socket> sockets_;
  std::list<Waiting> waiting_;
};

}  // namespace confine
