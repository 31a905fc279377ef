// `confine enter`: become a user who owns nothing, with an empty environment.
#pragma once

#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "confine_options.h"
#include "confine_report.h"

namespace confine {

// The first folder above `path` that `uid` may not pass through, "" when there is none.
inline std::string blocked_ancestor(const std::string& path, uid_t uid) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    struct stat info;
    const std::string folder = path.substr(0, slash);
    if (stat(folder.c_str(), &info) != 0) return "";
    if ((info.st_mode & S_IXOTH) == 0 && !(info.st_uid == uid && (info.st_mode & S_IXUSR) != 0)) return folder;
  }
  return "";
}

inline void make_mount_point(const std::string& path, bool is_folder) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    mkdir(path.substr(0, slash).c_str(), 0755);
  if (is_folder) mkdir(path.c_str(), 0755);
  else if (const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644); fd >= 0) close(fd);
}

// An unprivileged bubblewrap cannot bind a path under a 0700 home. In a mount namespace of its own, `enter` covers the
// closed folder with an empty folder that holds the given paths alone; the machine's own mounts stay as they are.
inline void uncover(const Options& o) {
  struct Hidden {
    std::string path;
    int fd = -1;
  };
  std::vector<Hidden> hidden;
  std::set<std::string> covers;
  for (const std::string& path : o.reach) {
    const std::string cover = blocked_ancestor(path, static_cast<uid_t>(o.uid));
    if (cover.empty()) continue;
    covers.insert(cover);
    hidden.push_back({path});
  }
  if (covers.empty()) return;
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    fail(o, "cannot reach", hidden[0].path + " as an unprivileged user (chmod o+x " + *covers.begin() + ")");
  // Opened in the new namespace: a descriptor of another mount namespace cannot be bound.
  for (Hidden& each : hidden) each.fd = open(each.path.c_str(), O_PATH | O_CLOEXEC);
  for (const std::string& cover : covers)
    if (mount("tmpfs", cover.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") != 0)
      fail(o, "cannot cover", cover);
  for (const Hidden& each : hidden) {
    struct stat info;
    if (each.fd < 0 || fstat(each.fd, &info) != 0) continue;
    make_mount_point(each.path, S_ISDIR(info.st_mode));
    const std::string source = "/proc/self/fd/" + std::to_string(each.fd);
    if (mount(source.c_str(), each.path.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0)
      fail(o, "cannot bind", each.path);
  }
}

inline void drop_to(const Options& o) {
  if (o.uid < 0) return;
  if (setgroups(0, nullptr) != 0) fail(o, "cannot drop", "groups");
  const auto gid = static_cast<gid_t>(o.gid);
  const auto uid = static_cast<uid_t>(o.uid);
  if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
    fail(o, "cannot become", "uid " + std::to_string(o.uid));
}

// Gives each inherited descriptor its number inside, through high numbers: the two sets of numbers may overlap.
inline void renumber(const Options& o) {
  std::vector<int> high;
  for (const auto& [inside, outside] : o.descriptors) {
    high.push_back(fcntl(outside, F_DUPFD_CLOEXEC, 128));
    if (high.back() < 0) fail(o, "cannot pass descriptor", std::to_string(outside));
  }
  for (const auto& [inside, outside] : o.descriptors) close(outside);
  for (size_t i = 0; i < high.size(); ++i)
    if (dup2(high[i], o.descriptors[i].first) < 0)
      fail(o, "cannot pass descriptor", std::to_string(o.descriptors[i].first));
}

[[noreturn]] inline void enter(Options& o) {
  renumber(o);
  if (o.uid >= 0) uncover(o);
  const bool is_guard = o.command[1] != nullptr && std::strcmp(o.command[1], "guard") == 0;
  if (!is_guard) drop_to(o);  // tier B's guard keeps its user, and its child drops to the other
  if (o.status_fd < 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  char* empty[] = {nullptr};
  execve(o.command[0], o.command.data(), empty);
  fail(o, "cannot execute", o.command[0], kNotExecuted);
}

}  // namespace confine
