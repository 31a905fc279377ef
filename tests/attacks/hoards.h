// Memory and files that a process holds where the usual places of /proc do not show them.
#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace hoards {

constexpr int kHeld_s = 10;

inline void hold(const char* what) {
  std::printf("holds %s\n", what);
  std::fflush(stdout);
  sleep(kHeld_s);
}

[[noreturn]] inline void end_the_first_thread() {
  for (;;) syscall(SYS_exit, 0);
}

// Does `work` in another thread while the first one is gone.
[[noreturn]] inline void without_the_first_thread(const std::function<void()>& work) {
  std::thread([work] {
    usleep(20000);
    work();
    _exit(0);
  }).detach();
  end_the_first_thread();
}

inline void take(size_t mib) {
  void* block = mmap(nullptr, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) _exit(3);
  std::memset(block, 1, mib << 20);
}

// Each thread starts the next one and ends: whoever looks for a living one finds another each time.
inline void* take_turns(void*) {
  pthread_t next;
  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  while (pthread_create(&next, &detached, take_turns, nullptr) != 0) {
  }
  return nullptr;
}

[[noreturn]] inline void memory(const std::string& how, size_t mib) {
  without_the_first_thread([how, mib] {
    take(mib);
    if (how == "turns") {
      take_turns(nullptr);
      syscall(SYS_exit, 0);
    }
    hold("memory");
  });
}

inline int full_file(const std::string& path, size_t mib) {
  const std::vector<char> block(1 << 20, 'x');
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  for (size_t i = 0; i < mib; ++i)
    if (write(fd, block.data(), block.size()) != static_cast<ssize_t>(block.size())) std::perror("write"), _exit(3);
  return fd;
}

inline void fill(const std::string& how, const std::string& folder, int count, size_t mib) {
  for (int i = 0; i < count; ++i) {
    const std::string path = folder + "/hoard" + std::to_string(i);
    const int fd = full_file(path, mib);
    if (how == "mapped" || how == "opened and mapped") (void)!mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (how != "hidden") unlink(path.c_str());
    if (how == "mapped" || how == "hidden") close(fd);
  }
  hold("files");
}

// `opened`, by a process without its first thread; `mapped` alone, or opened too; or `hidden`, in a folder that nobody may list.
inline void files(const std::string& how, const std::string& folder, int count, size_t mib) {
  const std::string hidden = folder + "/hidden";
  if (how == "hidden") mkdir(hidden.c_str(), 0300);
  const std::string where = how == "hidden" ? hidden : folder;
  if (how == "opened") without_the_first_thread([=] { fill(how, where, count, mib); });
  fill(how, where, count, mib);
}

// As much to walk through as fits.
inline void crowd(const std::string& folder) {
  for (int i = 0; i < 18000; ++i) close(open((folder + "/" + std::to_string(i)).c_str(), O_WRONLY | O_CREAT, 0600));
  for (int i = 0; i < 60000; ++i) (void)!mmap(nullptr, 4096, i % 2, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  hold("a crowd");
}

// -1: refused. Such a thread ends at once.
inline int thread_with_files_of_its_own() {
  constexpr size_t kStack = 64 << 10;
  char* stack = static_cast<char*>(mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const auto end = [](void*) -> int { return static_cast<int>(syscall(SYS_exit, 0)); };
  return clone(end, stack + kStack, CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, nullptr);
}

inline long stack_like_memory() {
  void* block = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
  return block == MAP_FAILED ? -1 : 0;
}

}  // namespace hoards
