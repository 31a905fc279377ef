// What processes use together: memory and threads, and the room of their folder, files that nobody can name included.
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "confine_tree.h"

namespace confine {

// What could not be looked at counts as this much: more than any limit, and sums of it stay below 2^64.
constexpr uint64_t kFull = 1ull << 56;

// ---- threads --------------------------------------------------------------------------------------------------------

enum class Life { kLives, kEnds, kGone };

// A thread that has begun to end holds neither memory nor files, and starts no other.
inline Life life_of(const std::string& thread) {
  const std::string stat = read_small((thread + "/stat").c_str());
  const size_t name_end = stat.rfind(')');
  char state = 0;
  unsigned long flags = 0;
  if (name_end == std::string::npos ||
      std::sscanf(stat.c_str() + name_end + 1, " %c %*d %*d %*d %*d %*d %lu", &state, &flags) != 2)
    return Life::kGone;
  constexpr unsigned long kExiting = 4;  // PF_EXITING
  return std::strchr("ZXx", state) != nullptr || (flags & kExiting) != 0 ? Life::kEnds : Life::kLives;
}

inline std::vector<std::string> threads_of(pid_t pid, bool& is_whole) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  std::vector<std::string> threads;
  DIR* tasks = opendir(folder.c_str());
  is_whole = tasks != nullptr || !hides_a_process(errno);
  if (tasks == nullptr) return threads;
  while (const dirent* entry = readdir(tasks))
    if (entry->d_name[0] != '.') threads.push_back(folder + "/" + entry->d_name);
  closedir(tasks);
  return threads;
}

// Calls `look` with the /proc folder of a thread that lives, until it returns true. The memory and the descriptors of a
// process are those of each of its threads (forbid_system_calls sees to that), but once its first thread has ended,
// /proc/PID shows neither. False: threads took turns too fast to look through any, or could not be listed. A process that
// ends has nothing to show.
template <class Look>
bool through_a_thread(pid_t pid, Look look) {
  std::set<std::string> ending;
  for (int attempt = 0; attempt < 64; ++attempt) {
    bool has_others = false, is_whole = true;
    for (const std::string& thread : threads_of(pid, is_whole)) {
      if (ending.count(thread) != 0) continue;
      has_others = true;
      const Life life = life_of(thread);
      if (life == Life::kEnds) ending.insert(thread);
      if (life == Life::kLives && look(thread)) return true;
    }
    if (!has_others) return is_whole;
  }
  return false;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

struct Usage {
  uint64_t anonymous_bytes = 0, shared_bytes = 0, threads = 0;

  void count_as_full() { anonymous_bytes = threads = kFull; }
};

inline uint64_t field_of(const std::string& status, const char* name) {
  const size_t at = status.find(name);
  return at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + std::strlen(name), nullptr, 10);
}

constexpr const char* kAnonymous = "\nRssAnon:";

inline bool add_memory(const std::string& status, Usage& total) {
  if (status.find(kAnonymous) == std::string::npos) return false;
  total.anonymous_bytes += 1024 * field_of(status, kAnonymous);
  total.shared_bytes += 1024 * field_of(status, "\nRssShmem:");
  return true;
}

inline Usage usage_of(const std::vector<pid_t>& pids) {
  Usage total;
  for (const pid_t pid : pids) {
    const std::string status = read_small(("/proc/" + std::to_string(pid) + "/status").c_str());
    if (status.empty()) {
      if (hides_a_process(errno)) total.count_as_full();
      continue;
    }
    total.threads += field_of(status, "\nThreads:");
    if (add_memory(status, total)) continue;
    const auto look = [&](const std::string& thread) { return add_memory(read_small((thread + "/status").c_str()), total); };
    if (!through_a_thread(pid, look)) total.count_as_full();
  }
  return total;
}

// ---- files ----------------------------------------------------------------------------------------------------------

// The name was removed, or has become another thing's, since it was listed.
inline bool is_gone(int error) { return error == ENOENT || error == ENOTDIR || error == ELOOP; }

// Bytes on disk below `folder`. One with very many entries counts as full, since walking it takes time, and so does one
// that may not be walked.
inline uint64_t bytes_below(int parent, const char* folder, int depth, uint64_t& entries_left) {
  const int fd = openat(parent, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return is_gone(errno) ? 0 : kFull;
  DIR* directory = fdopendir(fd);
  if (directory == nullptr) {
    close(fd);
    return kFull;
  }
  uint64_t total = 0;
  while (const dirent* entry = readdir(directory)) {
    if (std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) continue;
    struct stat info;
    if (entries_left == 0 || total >= kFull) {
      total = kFull;
      break;
    }
    --entries_left;
    if (fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      total += is_gone(errno) ? 0 : kFull;
      continue;
    }
    total += 512ull * static_cast<uint64_t>(info.st_blocks);
    if (!S_ISDIR(info.st_mode)) continue;
    total += depth > 0 ? bytes_below(fd, entry->d_name, depth - 1, entries_left) : kFull;
  }
  closedir(directory);
  return total;
}

using Files = std::map<std::string, uint64_t>;  // bytes by "device inode", as proc_pid_maps(5) has them

inline std::string file_of(const struct stat& info) {
  char text[64];
  std::snprintf(text, sizeof text, "%02x:%02x %" PRIu64, major(info.st_dev), minor(info.st_dev),
                static_cast<uint64_t>(info.st_ino));
  return text;
}

// Adds the deleted files that are open. False: there is nothing to read any more. What the guard may not read adds nothing.
inline bool add_open(const std::string& thread, Files& files) {
  DIR* directory = opendir((thread + "/fd").c_str());
  if (directory == nullptr) return errno == EACCES;
  while (const dirent* entry = readdir(directory)) {
    struct stat info;
    if (fstatat(dirfd(directory), entry->d_name, &info, 0) != 0) continue;
    if (S_ISREG(info.st_mode) && info.st_nlink == 0) files[file_of(info)] = 512ull * static_cast<uint64_t>(info.st_blocks);
  }
  closedir(directory);
  return true;
}

// Adds the deleted files of `folder` that are mapped. Their size cannot be asked: each counts as the largest that there may
// be, unless it is open too.
inline bool add_mapped(const std::string& thread, const std::string& folder, uint64_t largest, Files& files) {
  FILE* maps = std::fopen((thread + "/maps").c_str(), "re");
  if (maps == nullptr) return errno == EACCES;
  constexpr char kDeleted[] = " (deleted)\n";
  char* line = nullptr;
  size_t room = 0;
  for (ssize_t size; (size = getline(&line, &room, maps)) > 0;) {
    const std::string text(line, static_cast<size_t>(size));
    const size_t tail = text.size() - std::min(text.size(), sizeof kDeleted - 1);
    if (text.compare(tail, std::string::npos, kDeleted) != 0) continue;
    char device[16], inode[24];
    int path = 0;
    if (std::sscanf(text.c_str(), "%*s %*s %*s %15s %23s %n", device, inode, &path) != 2 || path == 0) continue;
    if (text.compare(static_cast<size_t>(path), folder.size() + 1, folder + "/") == 0)
      files.emplace(std::string(device) + " " + inode, largest == 0 ? kFull : largest);
  }
  std::free(line);
  std::fclose(maps);
  return true;
}

// Bytes of files that were deleted while a process keeps them, open or mapped: no name shows them. A file counts once,
// however many hold it.
inline uint64_t bytes_deleted_but_held(const std::vector<pid_t>& pids, const std::string& folder, uint64_t largest) {
  Files files;
  for (const pid_t pid : pids) {
    Files held;
    const auto look = [&](const std::string& thread) {
      held.clear();
      return add_open(thread, held) && add_mapped(thread, folder, largest, held) && life_of(thread) == Life::kLives;
    };
    if (!through_a_thread(pid, look)) return kFull;
    for (const auto& [file, bytes] : held) {
      const auto [known, is_new] = files.emplace(file, bytes);
      if (!is_new) known->second = std::min(known->second, bytes);
    }
  }
  uint64_t total = 0;
  for (const auto& [file, bytes] : files) total = std::min(total + bytes, kFull);
  return total;
}

}  // namespace confine
