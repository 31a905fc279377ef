// The processes below the supervisor: what they use together, and how to end them all.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_set>
#include <vector>

namespace confine {

// Leaves in errno why there is nothing, 0 where the file is empty.
inline std::string read_small(const char* path) {
  char text[4096];
  errno = 0;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t n = read(fd, text, sizeof text);
  close(fd);
  return n > 0 ? std::string(text, static_cast<size_t>(n)) : std::string();
}

// What this errno says of a file below /proc/PID: that its process is there, and was not looked at.
inline bool hides_a_process(int error) { return error != 0 && error != ENOENT && error != ESRCH; }

struct Link {
  pid_t pid, parent;
};

// `is_whole` is set to false where the guard lacked descriptors or memory to look. Processes that /proc hides from it are others'.
inline std::vector<Link> all_processes(bool& is_whole) {
  std::vector<Link> links;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) {
    is_whole = false;
    return links;
  }
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const std::string stat = read_small(path);
    is_whole = is_whole && !(stat.empty() && (errno == EMFILE || errno == ENFILE || errno == ENOMEM));
    const size_t name_end = stat.rfind(')');  // a process may put parentheses into its name
    if (name_end == std::string::npos || stat.size() < name_end + 4) continue;
    links.push_back({pid, static_cast<pid_t>(std::atoi(stat.c_str() + name_end + 4))});
  }
  closedir(proc);
  return links;
}

inline std::vector<pid_t> descendants(pid_t root, bool& is_whole) {
  const std::vector<Link> links = all_processes(is_whole);
  std::unordered_set<pid_t> family{root};
  std::vector<pid_t> found;
  for (bool grew = true; grew;) {
    grew = false;
    for (const Link& link : links)
      if (family.count(link.parent) != 0 && family.insert(link.pid).second) found.push_back(link.pid), grew = true;
  }
  return found;
}

// The living descendants, read from the kernel's own lists where there are any: on a busy machine a walk over all
// processes every 50 ms would take a noticeable share of a core. One look may miss a process that changes its parent.
// `is_whole` is set to false where a list could not be read.
inline std::vector<pid_t> children_of(pid_t root, bool& is_whole) {
  char path[80];
  std::snprintf(path, sizeof path, "/proc/%d/task/%d/children", root, root);
  if (access(path, R_OK) != 0) return descendants(root, is_whole);
  std::vector<pid_t> found, waiting{root};
  while (!waiting.empty()) {
    const pid_t pid = waiting.back();
    waiting.pop_back();
    std::snprintf(path, sizeof path, "/proc/%d/task", pid);
    DIR* tasks = opendir(path);
    if (tasks == nullptr) {
      is_whole = is_whole && !hides_a_process(errno);
      continue;
    }
    while (const dirent* task = readdir(tasks)) {
      if (task->d_name[0] == '.') continue;
      std::snprintf(path, sizeof path, "/proc/%d/task/%.16s/children", pid, task->d_name);
      const std::string list = read_small(path);
      is_whole = is_whole && !(list.empty() && hides_a_process(errno));
      char* end = nullptr;
      for (const char* at = list.c_str(); const long next = std::strtol(at, &end, 10); at = end)
        found.push_back(static_cast<pid_t>(next)), waiting.push_back(static_cast<pid_t>(next));
    }
    closedir(tasks);
  }
  return found;
}

// Stop all first, so that none forks while the others are being killed; then kill and collect until no child is left.
inline void kill_descendants() {
  bool is_whole = true;  // each round looks again
  for (int round = 0; round < 1000; ++round) {
    std::vector<pid_t> family = descendants(getpid(), is_whole);
    for (size_t seen = 0; seen < family.size();) {
      seen = family.size();
      for (const pid_t pid : family) kill(pid, SIGSTOP);
      family = descendants(getpid(), is_whole);
    }
    for (const pid_t pid : family) kill(pid, SIGKILL);
    int status;
    while (waitpid(-1, &status, WNOHANG | __WALL) > 0) {
    }
    if (waitpid(-1, &status, WNOHANG | __WALL) < 0) return;
    usleep(2000);
  }
}

}  // namespace confine
