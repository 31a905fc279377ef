// What the command's processes use together, and the limit that they pass.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "confine_options.h"
#include "confine_tree.h"
#include "confine_usage.h"

namespace confine {

inline double now_s() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Shared memory behind inherited descriptors counts as the parent's, not as the command's.
inline uint64_t inherited_bytes() {
  uint64_t total = 0;
  for (int fd = 3; fd < 1024; ++fd) {
    struct stat info;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) total += static_cast<uint64_t>(info.st_size);
  }
  return total;
}

constexpr uint64_t kMostEntries = 20000;  // of the working folder: more make a walk of it long

// Between two walks, in times of the last one and at most in seconds. A runner is timed, and stopped while PyTorch is: with
// as many files and mappings as it may have, walks at 0.2 s took 12 % of a core beside that. A builder writes more.
struct Pause {
  double walks, most_s;
};
constexpr Pause kRunnersPause{50, 2}, kBuildersPause{10, 0.2};

class Watch {
 public:
  explicit Watch(const Options& o) : o_(o), started_s_(now_s()), inherited_(inherited_bytes()) {}

  void begin(pid_t child) { child_ = child; }

  // "" while all is well, otherwise the name of the limit that was passed.
  const char* look() {
    if (o_.wall_s > 0 && now_s() - started_s_ > o_.wall_s) return "wall";
    bool is_whole = true;
    const std::vector<pid_t> family =
        o_.threads_only ? std::vector<pid_t>{child_} : children_of(getpid(), is_whole);
    Usage usage = usage_of(family);
    if (!is_whole) usage.count_as_full();
    const uint64_t own_shared = usage.shared_bytes > inherited_ ? usage.shared_bytes - inherited_ : 0;
    const uint64_t memory = usage.anonymous_bytes + own_shared;
    if (memory > peak_bytes_ && memory < kFull) peak_bytes_ = memory;
    if (o_.memory_bytes != 0 && memory > o_.memory_bytes) return "memory";
    if (o_.processes != 0 && usage.threads > o_.processes) return "processes";
    return disk_is_full(family) ? "disk" : "";
  }

  uint64_t peak_bytes() const { return peak_bytes_; }

  double seconds_left() const { return o_.wall_s > 0 ? std::max(0.0, o_.wall_s - (now_s() - started_s_)) : 3600; }

 private:
  // A walk takes time from the command and from what is timed beside it, so it is followed by a pause. One that the command
  // made long must not buy it a long time unseen.
  bool disk_is_full(const std::vector<pid_t>& family) {
    const double began_s = now_s();
    if (o_.workdir.empty() || o_.disk_bytes == 0 || began_s < next_walk_s_) return false;
    uint64_t entries = kMostEntries;
    // in this order: a file that is deleted between the two must not count twice
    const uint64_t deleted = bytes_deleted_but_held(family, o_.workdir, o_.file_bytes);
    const uint64_t listed = bytes_below(AT_FDCWD, o_.workdir.c_str(), 64, entries);
    const Pause& pause = o_.threads_only ? kRunnersPause : kBuildersPause;
    next_walk_s_ = now_s() + std::min(pause.walks * (now_s() - began_s), pause.most_s);
    return listed + deleted > o_.disk_bytes + inherited_;
  }

  const Options& o_;
  pid_t child_ = 0;
  double started_s_, next_walk_s_ = 0;
  uint64_t inherited_, peak_bytes_ = 0;
};

}  // namespace confine
