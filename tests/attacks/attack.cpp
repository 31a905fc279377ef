// One hostile program, one subcommand per attack. It prints what it achieved; the tests trust evidence instead.
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <omp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "hoards.h"

namespace {

void say(const char* what, long result) {
  std::printf("%s %s\n", what, result < 0 ? std::strerror(errno) : "DONE");
  std::fflush(stdout);
}

void print_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  for (char c : text) std::putchar(c == '\0' ? '\n' : c);
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void secrets() {
  for (char** entry = environ; *entry != nullptr; ++entry) std::puts(*entry);
  for (int pid = 1; pid < 65536; ++pid)
    for (const char* file : {"/environ", "/cmdline", "/maps"}) {
      const std::string path = "/proc/" + std::to_string(pid) + file;
      if (access(path.c_str(), R_OK) == 0) print_file(path);
    }
}

void network(const std::string& kind, const std::string& where) {
  if (kind == "tcp" || kind == "udp") {
    const int fd = socket(AF_INET, kind == "tcp" ? SOCK_STREAM : SOCK_DGRAM, 0);
    const sockaddr_in to = loopback(std::atoi(where.c_str()));
    say("connect", connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to));
    say("send", send(fd, "hit", 3, MSG_NOSIGNAL));
  } else if (kind == "uring") {
    io_uring_params parameters{};
    say("io_uring_setup", syscall(SYS_io_uring_setup, 8, &parameters));
  } else {
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    const size_t skip = kind == "abstract" ? 1 : 0;
    std::memcpy(to.sun_path + skip, where.data(), where.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + skip + where.size());
    for (int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) {
      const int fd = socket(AF_UNIX, type, 0);
      say("connect", connect(fd, reinterpret_cast<sockaddr*>(&to), size));
      say("send", send(fd, "hit", 3, MSG_NOSIGNAL));
      int pair[2] = {-1, -1};
      (void)!socketpair(AF_UNIX, type, 0, pair);
      say("sendto", sendto(pair[0], "hit", 3, MSG_NOSIGNAL, reinterpret_cast<sockaddr*>(&to), size));
    }
  }
}

void write_to(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  say("open", fd);
  if (fd >= 0) say("write", write(fd, "owned", 5));
}

void escape(const std::string& outside, const std::string& inside) {
  write_to(outside + "/planted");
  say("symlink", symlink(outside.c_str(), (inside + "/link").c_str()));
  write_to(inside + "/link/planted");
  write_to(inside + "/../planted");
  say("hardlink", link((outside + "/mine").c_str(), (inside + "/hard").c_str()));
  write_to(inside + "/hard");
  write_to(outside + "/mine");
  say("truncate", truncate((outside + "/mine").c_str(), 0));
  say("truncating open", open((outside + "/mine").c_str(), O_RDONLY | O_TRUNC));
  say("rename", rename((outside + "/mine").c_str(), (inside + "/moved").c_str()));
  say("unlink", unlink((outside + "/mine").c_str()));
  say("chmod", chmod((outside + "/mine").c_str(), 0777));
  say("mkdir", mkdir((outside + "/folder").c_str(), 0755));
}

void place() {
  say("mbind", syscall(SYS_mbind, nullptr, 0, 0, nullptr, 0, 0));
  say("set_mempolicy", syscall(SYS_set_mempolicy, 0, nullptr, 0));
  say("set_mempolicy_home_node", syscall(450, nullptr, 0, 0, 0));
}

void slow(pid_t victim) {
  say("setpriority", setpriority(PRIO_PROCESS, victim, 19));
  say("setpriority of the user", setpriority(PRIO_USER, 0, 19));
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  say("sched_setaffinity", sched_setaffinity(victim, sizeof first, &first));
  const sched_param none{};
  say("sched_setscheduler", sched_setscheduler(victim, SCHED_IDLE, &none));
  const rlimit64 little{64, 64};
  say("prlimit", syscall(SYS_prlimit64, victim, RLIMIT_NOFILE, &little, nullptr));
  // The kernel lets nobody move a guard's pages. By arguments that it refuses for what they are, the filter shows.
  say("move_pages", syscall(SYS_move_pages, victim, 0, nullptr, nullptr, nullptr, -1));
  say("migrate_pages", syscall(SYS_migrate_pages, victim, 64, -1, -1));
  say("ioprio_set", syscall(SYS_ioprio_set, 1, victim, 3 << 13));
  place();
}

void molest(pid_t victim, uintptr_t address) {
  char bytes[32] = {};
  iovec here{bytes, sizeof bytes - 1}, there{reinterpret_cast<void*>(address), sizeof bytes - 1};
  say("process_vm_readv", process_vm_readv(victim, &here, 1, &there, 1, 0));
  const int memory = open(("/proc/" + std::to_string(victim) + "/mem").c_str(), O_RDWR);
  if (memory >= 0) (void)!pread(memory, bytes, sizeof bytes - 1, static_cast<off_t>(address));
  if (memory >= 0) (void)!pwrite(memory, "OWNED", 5, static_cast<off_t>(address));
  std::printf("bytes %s\n", bytes);
  say("ptrace", ptrace(PTRACE_ATTACH, victim, nullptr, nullptr));
  slow(victim);
  for (int number : {SIGSTOP, SIGTERM, SIGKILL}) say("kill", kill(victim, number));
  say("tgkill", syscall(SYS_tgkill, victim, victim, SIGKILL));
  say("pidfd_open", syscall(434, victim, 0));
  say("kill the parent", kill(getppid(), SIGKILL));
  say("limits of the parent", syscall(SYS_prlimit64, getppid(), 0, nullptr, nullptr));
}

[[noreturn]] void fork_bomb() {
  for (;;) {
    if (fork() < 0) usleep(1000);
  }
}

void fork_once() {
  say("fork", fork());
  say("vfork by clone", syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  char program[] = "/bin/echo", word[] = "EXECUTED";
  char* arguments[] = {program, word, nullptr};
  char* none[] = {nullptr};
  say("execve", execve(program, arguments, none));
  const int fd = open(program, O_PATH);
  for (int number = 0; number < 300; ++number) dup2(fd, number);
  for (int number = 3; number < 300; ++number) syscall(SYS_execveat, number, "", arguments, none, AT_EMPTY_PATH);
}

void threads_bomb() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 2000; ++i) threads.emplace_back([] { sleep(30); });
  std::printf("threads %zu\n", threads.size());
}

void memory_bomb(bool shared) {
  const size_t step = 16 << 20;
  size_t total = 0;
  for (; total < (8ull << 30); total += step) {
    void* block = mmap(nullptr, step, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);
    if (block == MAP_FAILED) break;
    std::memset(block, 1, step);
  }
  std::printf("took %zu MiB\n", total >> 20);
}

// One large file, many small ones, or deleted ones that stay open.
void fill(const std::string& folder, const std::string& how) {
  const std::vector<char> block(how == "large" ? 1 << 20 : 64 << 10, 'x');
  for (int i = 0; i < 4000; ++i) {
    const std::string path = folder + "/" + (how == "large" ? "large" : "small" + std::to_string(i));
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (fd < 0 || write(fd, block.data(), block.size()) < static_cast<ssize_t>(block.size())) break;
    if (how == "deleted") unlink(path.c_str());
    else close(fd);
    usleep(200);
  }
}

void leave_a_grandchild() {
  if (fork() != 0) {
    usleep(50000);
    return;
  }
  setsid();
  if (fork() != 0) _exit(0);
  prctl(PR_SET_PDEATHSIG, 0);
  signal(SIGTERM, SIG_IGN);
  sleep(60);
}

void calls() {
  say("unshare", unshare(CLONE_NEWUSER));
  say("clone newuser", syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  say("mount", mount("none", "/tmp", "tmpfs", 0, nullptr));
  say("bpf", syscall(SYS_bpf, 0, nullptr, 0));
  say("userfaultfd", syscall(SYS_userfaultfd, 0));
  say("perf_event_open", syscall(SYS_perf_event_open, nullptr, 0, -1, -1, 0));
  say("keyctl", syscall(SYS_keyctl, 0, -3, 0));
  say("memfd_create", syscall(SYS_memfd_create, "x", 0));
  say("shmget", syscall(SYS_shmget, 0, 4096, 0600));
  say("open_by_handle_at", syscall(SYS_open_by_handle_at, 0, nullptr, 0));
  say("prctl pdeathsig", prctl(PR_SET_PDEATHSIG, 0));
  say("thread with files of its own", hoards::thread_with_files_of_its_own());
  say("close_range with files of its own", syscall(436, 300u, 300u, 2u));
  say("mmap that grows down", hoards::stack_like_memory());
  say("new call", syscall(2000));
  int terminal = 0;
  say("TIOCSTI", ioctl(0, 0x5412, &terminal));
#if defined(__x86_64__)
  say("x32 getpid", syscall(0x40000000 + SYS_getpid));
#endif
}

// Everything by which a pipe's contents are seen or counted and left there. Then it takes them, word by word.
void peek() {
  constexpr int kPipe = 4, kPage = 4096, kFree = 200;
  int own[2] = {-1, -1}, waiting = 0;
  if (pipe2(own, O_NONBLOCK) != 0) return;
  say("tee", tee(kPipe, own[1], kPage, SPLICE_F_NONBLOCK));
  say("splice", splice(kPipe, nullptr, own[1], nullptr, 4, SPLICE_F_NONBLOCK));
  char* memory = static_cast<char*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  munmap(memory + kPage, kPage);
  char* few = memory + kPage - 8;  // bytes that can be written: what a read wants beyond makes it fail
  iovec part{few, 12};
  say("vmsplice", vmsplice(kPipe, &part, 1, SPLICE_F_NONBLOCK));
  say("read of three words", read(kPipe, few, 12));
  say("read of 4 GiB and a word", read(kPipe, few, (1ull << 32) + 4));
  say("readv", readv(kPipe, &part, 1));
  say("preadv2", preadv2(kPipe, &part, 1, -1, 0));
  say("FIONREAD", ioctl(kPipe, FIONREAD, &waiting));
  say("F_SETPIPE_SZ", fcntl(kPipe, F_SETPIPE_SZ, kPage));
  say("dup", dup(kPipe));
  say("dup3", dup3(kPipe, kFree, 0));
  say("F_DUPFD", fcntl(kPipe, F_DUPFD_CLOEXEC, kFree));
#if defined(__x86_64__)
  say("dup2", syscall(SYS_dup2, kPipe, kFree));
#endif
  sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  sock_fprog all{1, &allow};  // who answers a filter's calls may give a descriptor another number
  say("listener", syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &all));
  say("io_submit", syscall(SYS_io_submit, 0, 0, nullptr));
  say("sendfile", sendfile(own[1], kPipe, nullptr, 4));
  say("fchmod", fchmod(kPipe, 0600));
  say("chmod", chmod("/proc/self/fd/4", 0600));
  say("opened to be read", open("/proc/self/fd/4", O_RDONLY | O_NONBLOCK));
  say("opened to be written", open("/proc/self/fd/4", O_WRONLY | O_NONBLOCK));
  say("part of a word", read(kPipe, memory + kPage - 3, 4));
  for (int word = 0; read(kPipe, &word, sizeof word) > 0;) std::printf("word %d\n", word);
}

// Copies between two pipes of its own.
void copy_pipes() {
  int from[2], to[2];
  if (pipe(from) != 0 || pipe(to) != 0 || write(from[1], "words", 5) != 5) return;
  char byte = 'x';
  const iovec part{&byte, 1};
  say("tee", tee(from[0], to[1], 5, 0));
  say("splice", splice(from[0], nullptr, to[1], nullptr, 5, 0));
  say("vmsplice", vmsplice(to[1], &part, 1, 0));
  int waiting = 0;
  say("FIONREAD", ioctl(from[0], FIONREAD, &waiting));
  std::printf("waiting %d\n", waiting);
}

// As much of everything as an ordinary program takes: what stops a bomb must let this pass.
void modest(const std::string& folder, bool may_fork) {
  std::vector<char> memory(32 << 20, 1);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([] { usleep(1000); });
  for (std::thread& thread : threads) thread.join();
  const int file = open((folder + "/modest").c_str(), O_WRONLY | O_CREAT, 0644);
  const ssize_t written = write(file, memory.data(), 4 << 20);
  int children = 0;
  for (int i = 0; may_fork && i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    if (child > 0 && waitpid(child, nullptr, 0) == child) ++children;
  }
  std::printf("modest: %zu threads, %zd bytes, %d children\n", threads.size(), written, children);
}

void honest(const std::string& folder) {
  int threads = 0;
#pragma omp parallel num_threads(4) reduction(+ : threads)
  threads += 1;
  std::printf("threads %d\n", threads);
  if (!folder.empty()) write_to(folder + "/product");
  raise(SIGCONT);
  std::puts("finished");
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> a(argv + 1, argv + argc);
  if (a.empty()) return 2;
  if (a[0] == "honest") honest(a.size() > 1 ? a[1] : "");
  else if (a[0] == "modest") modest(a[1], a[2] == "forks");
  else if (a[0] == "secrets") secrets();
  else if (a[0] == "read") print_file(a[1]);
  else if (a[0] == "network") network(a[1], a[2]);
  else if (a[0] == "escape") escape(a[1], a[2]);
  else if (a[0] == "molest") molest(std::atoi(a[1].c_str()), std::strtoull(a[2].c_str(), nullptr, 10));
  else if (a[0] == "slow") slow(a[1] == "guard" ? getppid() : 0);
  else if (a[0] == "fork-bomb") fork_bomb();
  else if (a[0] == "fork-once") fork_once();
  else if (a[0] == "threads-bomb") threads_bomb();
  else if (a[0] == "memory-bomb") memory_bomb(a[1] == "shared");
  else if (a[0] == "fill") fill(a[1], a[2]);
  else if (a[0] == "hoard-memory") hoards::memory(a[1], std::stoul(a[2]));
  else if (a[0] == "hoard-files") hoards::files(a[1], a[2], std::stoi(a[3]), std::stoul(a[4]));
  else if (a[0] == "crowd") hoards::crowd(a[1]);
  else if (a[0] == "raise") raise(std::atoi(a[1].c_str()));
  else if (a[0] == "spin") for (volatile unsigned long i = 0;; i = i + 1) {}
  else if (a[0] == "sleep") sleep(60);
  else if (a[0] == "linger") leave_a_grandchild();
  else if (a[0] == "linger-and-stay") leave_a_grandchild(), sleep(60);
  else if (a[0] == "calls") calls();
  else if (a[0] == "peek") peek();
  else if (a[0] == "copy-pipes") copy_pipes();
  else return 2;
  return 0;
}
