// Landlock: the files that confined code may touch; no TCP, and no signals or abstract sockets to processes outside.
//
// Rights and structures that old kernel headers lack are spelled out, so that one binary uses what the running kernel
// offers: truncate from ABI 3, TCP from 4, ioctl on devices from 5, scopes from 6.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "confine_options.h"

namespace confine {

constexpr uint64_t kExecute = 1ull << 0, kWriteFile = 1ull << 1, kReadFile = 1ull << 2, kReadDir = 1ull << 3,
                   kRefer = 1ull << 13, kTruncate = 1ull << 14, kIoctlDevice = 1ull << 15;
constexpr uint64_t kAllOfAbi1 = (1ull << 13) - 1;
constexpr uint64_t kMakeCharacterDevice = 1ull << 6, kMakeSocket = 1ull << 9, kMakeBlockDevice = 1ull << 11;
constexpr uint64_t kOfOneFile = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDevice;
constexpr uint64_t kBindTcp = 1, kConnectTcp = 2;
constexpr uint64_t kScopeAbstractSockets = 1, kScopeSignals = 2;

struct RulesetAttributes {  // struct landlock_ruleset_attr of ABI 6
  uint64_t files, network, scoped;
};

struct __attribute__((packed)) PathRule {  // struct landlock_path_beneath_attr
  uint64_t allowed;
  int32_t parent_fd;
};

// A smaller number makes a launcher that does what it can on an older kernel, for a test of it on a newer one.
#ifndef CONFINE_NEWEST_LANDLOCK
#define CONFINE_NEWEST_LANDLOCK 1000
#endif

inline int landlock_abi() {
  return std::min(static_cast<int>(syscall(444, nullptr, 0, 1u)), CONFINE_NEWEST_LANDLOCK);
}

class Landlock {
 public:
  // `own_network`: the network namespace holds the command alone, so TCP and sockets in writable folders are allowed.
  Landlock(int abi, bool own_network) : abi_(abi), own_network_(own_network) {
    files_ = kAllOfAbi1 | (abi >= 2 ? kRefer : 0) | (abi >= 3 ? kTruncate : 0) | (abi >= 5 ? kIoctlDevice : 0);
    const uint64_t tcp = own_network ? 0 : kBindTcp | kConnectTcp;
    RulesetAttributes attributes{files_, tcp, kScopeAbstractSockets | kScopeSignals};
    const size_t size = abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
    ruleset_ = static_cast<int>(syscall(444, &attributes, size, 0u));
  }

  bool scopes_signals() const { return abi_ >= 6; }

  // A path that does not exist grants nothing.
  bool allow(const std::string& path, uint64_t rights) {
    const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (fd < 0) return true;
    struct stat info;
    if (fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode)) rights &= kOfOneFile;
    PathRule rule{rights & files_, fd};
    const bool added = syscall(445, ruleset_, 1, &rule, 0u) == 0;
    close(fd);
    return added;
  }

  bool allow_reading(const std::string& path) { return allow(path, kExecute | kReadFile | kReadDir); }

  // Which names there are, and nothing of what the files hold.
  bool allow_listing(const std::string& path) { return allow(path, kReadDir); }

  // Everything but new sockets and device nodes.
  bool allow_writing(const std::string& path) {
    const uint64_t sockets = own_network_ ? 0 : kMakeSocket;
    return allow(path, ~(kMakeCharacterDevice | kMakeBlockDevice | sockets | kIoctlDevice));
  }

  bool allow_device(const std::string& path) { return allow(path, kReadFile | kWriteFile | kTruncate | kIoctlDevice); }

  bool restrict_self() {
    const bool restricted = ruleset_ >= 0 && syscall(446, ruleset_, 0u) == 0;
    if (ruleset_ >= 0) close(ruleset_);
    return restricted;
  }

 private:
  int abi_;
  bool own_network_;
  uint64_t files_;
  int ruleset_;
};

inline bool restrict_files(const Options& o, int abi) {
  const bool own_network = o.own_network && o.namespaced;
  Landlock landlock(abi, own_network);
  bool ok = true;
  // cuInit writes below /proc/self, this process's own folder, and fails when it cannot (driver 580). A tool and the
  // program that it watches are two processes: with namespaces of their own, /proc holds these two alone.
  const char* own_processes = own_network ? "/proc" : "/proc/self";
  if (o.uses_devices) ok = landlock.allow(own_processes, kReadFile | kReadDir | kWriteFile | kTruncate);
  for (const auto& path : o.listable) ok = ok && landlock.allow_listing(path);
  for (const auto& path : o.readable) ok = ok && landlock.allow_reading(path);
  for (const auto& path : o.writable) ok = ok && landlock.allow_writing(path);
  for (const auto& path : o.devices) ok = ok && landlock.allow_device(path);
  return ok && landlock.restrict_self();
}

}  // namespace confine
