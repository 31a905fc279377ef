// confine: Ridgeline's launcher for untrusted code.
//
//   confine enter [--uid U --gid G] [--reach PATH]... -- PROGRAM ...
//       Become unprivileged with an empty environment, with each PATH still reachable, then exec PROGRAM: bubblewrap
//       (tier A) or `confine guard` (tier B).
//   confine guard [limits and rules] -- COMMAND ...
//       Start COMMAND under rlimits, Landlock and seccomp, watch what its processes use together, and leave none of
//       them behind, whoever is killed. Exit status: the command's, 128 + n for signal n, 124 past a limit,
//       125 when the sandbox could not be set up, 127 when COMMAND could not be executed. COMMAND may end with any of
//       these itself; the status lines (confine_report.h) tell them apart.
//
// In tier A the guard is process 1 of its PID namespace: when the guard ends, the kernel ends the rest. In tier B two
// guards watch each other, both subreapers: when one is killed, the other ends the tree.

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "confine_enter.h"
#include "confine_handover.h"
#include "confine_landlock.h"
#include "confine_options.h"
#include "confine_probe.h"
#include "confine_relay.h"
#include "confine_report.h"
#include "confine_seccomp.h"
#include "confine_tree.h"
#include "confine_watch.h"

namespace confine {

// ---- guard: the child -----------------------------------------------------------------------------------------------

void limit(const Options& o, int resource, uint64_t soft, uint64_t hard, const char* name) {
  const rlimit wanted{soft, hard};
  if (setrlimit(static_cast<__rlimit_resource_t>(resource), &wanted) != 0) fail(o, "cannot limit", name);
}

void set_limits(const Options& o, uint64_t processes_of_uid) {
  limit(o, RLIMIT_CORE, 0, 0, "core files");
  if (o.cpu_s != 0) limit(o, RLIMIT_CPU, o.cpu_s, o.cpu_s + 1, "CPU time");
  if (o.cap_data && o.memory_bytes != 0) limit(o, RLIMIT_DATA, o.memory_bytes, o.memory_bytes, "memory");
  if (o.file_bytes != 0) limit(o, RLIMIT_FSIZE, o.file_bytes, o.file_bytes, "file size");
  const uint64_t processes = o.processes + processes_of_uid;
  if (o.processes != 0 && processes_of_uid != 0) limit(o, RLIMIT_NPROC, processes, processes, "processes");
}

// Opens the program at a descriptor above every number that the program may use: see forbid_system_calls.
int open_program(const Options& o) {
  const int fd = open(o.command[0], O_PATH | O_CLOEXEC);
  if (fd < 0) fail(o, "cannot execute", o.command[0], kNotExecuted);
  rlimit now{};
  getrlimit(RLIMIT_NOFILE, &now);
  const int above = static_cast<int>(o.open_files < now.rlim_max ? o.open_files : now.rlim_max - 1);
  limit(o, RLIMIT_NOFILE, now.rlim_max, now.rlim_max, "open files");
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, above);
  if (high < 0) fail(o, "cannot keep", o.command[0]);
  close(fd);
  return high;
}

void pin(const Options& o) {
  if (o.cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : o.cpus) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) fail(o, "cannot pin to", "the given cores");
}

// Tier B's command with a network of its own.
bool is_relayed(const Options& o) { return o.own_network && !o.namespaced; }

[[noreturn]] void become_command(Options& o, uint64_t processes_of_uid, int guards_fd) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setsid();
  drop_to(o);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* folder = o.workdir.empty() ? "/" : o.workdir.c_str();
  if (chdir(folder) != 0) fail(o, "cannot enter", folder);
  pin(o);
  const int program = open_program(o);
  const int abi = landlock_abi();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail(o, "cannot set", "no_new_privs");
  if (abi > 0 && !restrict_files(o, abi) && !o.unsafe) fail(o, "cannot apply", "Landlock");
  if (abi <= 0 && !o.namespaced && !o.unsafe) fail(o, "this kernel has no", "Landlock");
  set_limits(o, processes_of_uid);
  limit(o, RLIMIT_NOFILE, o.open_files, o.open_files, "open files");
  report(o, "ready");
  Calls calls;
  calls.uses_devices = o.uses_devices;
  calls.own_network = o.own_network && o.namespaced;
  calls.is_relayed = is_relayed(o);
  calls.shares_files = !o.namespaced;
  calls.truncates_freely = !o.namespaced && abi < 3;
  calls.only_target = o.namespaced || abi >= 6 ? 0 : getpid();
  calls.caps_data = o.cap_data && o.memory_bytes != 0;
  calls.shares_memory = !o.threads_only || o.uses_devices;
  calls.program_fd = o.threads_only ? program : -1;
  calls.word_pipe = o.word_pipe;
  int listener = -1;
  if (!forbid_system_calls(calls, listener) && !o.unsafe) fail(o, "cannot apply", "seccomp");
  if (is_relayed(o) && !give_descriptor(guards_fd, listener)) fail(o, "cannot hand over", "its sockets");
  if (o.threads_only) syscall(SYS_execveat, program, "", o.command.data(), o.environment.data(), AT_EMPTY_PATH);
  else execve(o.command[0], o.command.data(), o.environment.data());
  fail(o, "cannot execute", o.command[0], kNotExecuted);
}

// ---- guard: the supervisor ------------------------------------------------------------------------------------------

struct Ending {
  int wait_status = 0;
  bool ended_itself = false;
  const char* limit = "";
};

// The time between two looks of the watch. A look takes 30 us of a runner's time, and rlimits hold its single process in
// between. A builder is not timed, and its many processes grow faster.
constexpr int kRunnerTickMs = 100, kBuilderTickMs = 50;

// A connection that could not be made at once is tried again after this time.
constexpr int kConnectionTickMs = 2;

// Waits for the end of `child`, for a limit, or for the parent (or the other guard) to hang up.
Ending supervise(const Options& o, pid_t child, int children_fd, int partner_fd, Watch& watch, Relay* relay) {
  Ending ending;
  int tick_ms = 10;
  int relay_fd = relay != nullptr ? relay->descriptor() : -1;
  for (double next_look_s = 0;;) {
    pollfd waited[] = {
        {children_fd, POLLIN, 0}, {o.status_fd, POLLIN, 0}, {partner_fd, POLLIN, 0}, {relay_fd, POLLIN, 0}};
    if (relay != nullptr && relay->has_waiting()) tick_ms = kConnectionTickMs;
    poll(waited, 4, std::min(tick_ms, 1 + static_cast<int>(1000 * watch.seconds_left())));
    tick_ms = o.threads_only ? kRunnerTickMs : kBuilderTickMs;
    if (relay != nullptr) relay->serve();
    if ((waited[3].revents & (POLLHUP | POLLERR)) != 0) relay_fd = -1;  // nobody is left to hand anything over
    signalfd_siginfo drained;
    while (read(children_fd, &drained, sizeof drained) > 0) {
    }
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG | __WALL)) > 0;)
      if (pid == child) ending.wait_status = status, ending.ended_itself = true;
    if (ending.ended_itself) return ending;
    if (waited[1].revents != 0 || waited[2].revents != 0) ending.limit = "stopped";
    if (*ending.limit == 0 && now_s() >= next_look_s) {
      ending.limit = watch.look();
      if (relay != nullptr) next_look_s = now_s() + 1e-3 * kBuilderTickMs;
    }
    if (*ending.limit != 0) return ending;
  }
}

int exit_code(const Ending& ending) {
  if (!ending.ended_itself) return kPastLimit;
  return WIFSIGNALED(ending.wait_status) ? 128 + WTERMSIG(ending.wait_status) : WEXITSTATUS(ending.wait_status);
}

void report_ending(const Options& o, const Ending& ending, uint64_t watched_peak) {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const uint64_t largest = 1024 * static_cast<uint64_t>(used.ru_maxrss);
  const double cpu_s = static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                       1e-6 * static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  const char* limit_name = *ending.limit != 0 ? ending.limit : "-";
  report(o, "exit %d %s %llu %.6f", ending.ended_itself ? ending.wait_status : -1, limit_name,
         static_cast<unsigned long long>(watched_peak > largest ? watched_peak : largest), cpu_s);
  if (o.status_fd >= 0) return;
  if (*ending.limit != 0) {
    std::fprintf(stderr, "sandbox: killed: %s limit\n", limit_name);
  } else if (WIFSIGNALED(ending.wait_status)) {
    const int number = WTERMSIG(ending.wait_status);
    std::fprintf(stderr, "sandbox: killed by signal %d (%s)\n", number, strsignal(number));
  }
}

// The processes that RLIMIT_NPROC counts before the command starts. 0: leave the limit to the watch.
uint64_t processes_of(const Options& o) {
  utsname kernel{};
  uname(&kernel);
  int major = 0, minor = 0;
  std::sscanf(kernel.release, "%d.%d", &major, &minor);
  // From 5.14 on a user namespace has a count of its own; before, the user's other processes are in it, unseen from here.
  if (o.namespaced) return major > 5 || (major == 5 && minor >= 14) ? 2 : 0;
  uint64_t count = 1;
  const uid_t uid = o.uid >= 0 ? static_cast<uid_t>(o.uid) : getuid();
  bool is_whole = true;
  for (const Link& link : all_processes(is_whole)) {
    char path[64];
    struct stat info;
    std::snprintf(path, sizeof path, "/proc/%d/task", link.pid);
    if (stat(path, &info) == 0 && info.st_uid == uid) count += info.st_nlink - 2;
  }
  return is_whole ? count : 0;
}

// Closes the guard's copies of the command's descriptors: the parent must see the command hang up.
void close_inherited(const std::set<int>& kept) {
  for (int fd = 0; fd < 1024; ++fd)
    if (fd != STDERR_FILENO && kept.count(fd) == 0) close(fd);
}

// The guard of a relayed command becomes its user: to read a process of the same user that it started needs neither
// CAP_SYS_PTRACE, which containers lack, nor a ptrace_scope below 1. The other guard stays who it is.
void become_peer(Options& o) {
  drop_to(o);
  prctl(PR_SET_DUMPABLE, 0);  // which a new user may set back
  o.uid = o.gid = -1;
}

[[noreturn]] void guard_tree(Options& o, int partner_fd) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_DUMPABLE, 0);
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_BLOCK, &children, nullptr);
  const int children_fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  if (is_relayed(o)) become_peer(o);
  Watch watch(o);
  const uint64_t processes_of_uid = processes_of(o);
  int handed[2] = {-1, -1};
  if (is_relayed(o) && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, handed) != 0) fail(o, "cannot make", "sockets");
  const pid_t child = fork();
  if (child < 0) fail(o, "cannot", "fork");
  if (child == 0) become_command(o, processes_of_uid, handed[1]);
  watch.begin(child);
  close_inherited({o.status_fd, o.report_fd, children_fd, partner_fd, handed[0]});
  std::optional<Relay> relay;
  if (is_relayed(o)) relay.emplace(o.workdir, take_descriptor(handed[0]));
  const Ending ending = supervise(o, child, children_fd, partner_fd, watch, relay ? &*relay : nullptr);
  kill_descendants();
  report_ending(o, ending, watch.peak_bytes());
  std::_Exit(exit_code(ending));
}

// Tier B: this process waits for the inner guard. When this process is killed, the pipe closes, and the inner guard ends
// the tree. When the inner guard is killed, this process inherits its orphans and ends them.
[[noreturn]] void guard_twice(Options& o) {
  int partner[2];
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (pipe2(partner, O_CLOEXEC) != 0) fail(o, "cannot make", "a pipe");
  const pid_t inner = fork();
  if (inner < 0) fail(o, "cannot", "fork");
  if (inner == 0) {
    close(partner[1]);
    setsid();  // a signal to the group, as ninja sends one to what it stops, must not reach both guards
    guard_tree(o, partner[0]);
  }
  close_inherited({partner[1]});
  int status = 0;
  while (waitpid(inner, &status, 0) < 0 && errno == EINTR) {
  }
  kill_descendants();
  std::_Exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

[[noreturn]] void guard(Options& o) {
  for (const int fd : {o.status_fd, o.report_fd})
    if (fd >= 0) fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (o.status_fd < 0 || o.namespaced) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (o.namespaced) guard_tree(o, -1);
  guard_twice(o);
}

}  // namespace confine

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "probe") == 0) confine::probe(argc, argv);
  if (argc > 1 && std::strcmp(argv[1], "talk") == 0) confine::talk();
  confine::Options options = confine::parse(argc, argv);
  if (options.verb == "enter") confine::enter(options);
  if (options.verb == "guard") confine::guard(options);
  confine::usage("unknown verb", argv[1]);
}
