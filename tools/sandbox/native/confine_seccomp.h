// The system calls that confined code may not make.
//
// The filter lists refusals under a ceiling instead of permissions: nvcc, CUDA, Python and OpenMP together use most of the
// harmless calls. Calls newer than the filter's file are refused as unknown (ENOSYS).
#pragma once

#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "confine_filter.h"

namespace confine {

constexpr int kBindToInterface = 62;  // SO_BINDTOIFINDEX of Linux 5.0

// F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY and, of Linux 6.19, F_SETDELEG
constexpr int kSetSignal = 10, kSetOwnerEx = 15, kSetLease = 1024, kNotify = 1026, kSetDelegation = 1040;

// Calls that some kernel headers of our range do not name yet. The numbers are the same on every architecture.
constexpr int kPidfdSendSignal = 424, kIoUringSetup = 425, kIoUringEnter = 426, kIoUringRegister = 427, kOpenTree = 428,
              kMoveMount = 429, kFsopen = 430, kFsconfig = 431, kFsmount = 432, kFspick = 433, kPidfdOpen = 434,
              kClone3 = 435, kPidfdGetfd = 438, kProcessMadvise = 440, kMountSetattr = 442, kMemfdSecret = 447,
              kProcessMrelease = 448, kSetMempolicyHomeNode = 450, kFchmodat2 = 452, kSetxattrat = 463,
              kRemovexattrat = 466, kOpenTreeAttr = 467, kFileSetattr = 469, kOpenat2 = 437, kCloseRange = 436;

// EPERM and not a kill: libraries probe for name services and cope with a refusal.
inline void refuse_the_network(Filter& filter, bool uses_devices) {
  for (int call : {SYS_socketpair, SYS_connect, SYS_accept, SYS_accept4}) filter.refuse(call);
  if (uses_devices) {
    // cuInit fails without an abstract SOCK_SEQPACKET socket of its own to listen on (driver 580). It can neither
    // connect nor be sent from, and an IP family cannot be chosen.
    filter.refuse_unless(SYS_socket, 0, ~0u, AF_UNIX);
    filter.refuse_unless(SYS_socket, 1, 0xf, SOCK_SEQPACKET);
  } else {
    for (int call : {SYS_socket, SYS_bind, SYS_listen}) filter.refuse(call);
  }
}

// A watching tool and the program under it: the guard makes, names and connects their sockets (confine_relay.h). What
// else could name an address is refused: a datagram, a connection by MSG_FASTOPEN, a route in IP options, a device. A port
// is not shared with other processes either: SO_REUSEADDR, which servers insist on, has no effect.
inline void hand_the_network_over(Filter& filter) {
  for (int call : {SYS_socket, SYS_bind, SYS_listen, SYS_connect}) filter.hand_over(call);
  filter.refuse_pointer(SYS_sendto, 4);
  filter.refuse_unless(SYS_sendto, 3, MSG_FASTOPEN, 0);
  filter.refuse_unless(SYS_sendmsg, 2, MSG_FASTOPEN, 0);
  filter.refuse_unless(SYS_sendmmsg, 3, MSG_FASTOPEN, 0);
  for (const uint32_t type : {SOCK_DGRAM, SOCK_RAW}) filter.refuse_if(SYS_socketpair, 1, 0xf, type);
  filter.refuse_if(SYS_setsockopt, 1, ~0u, IPPROTO_IP);
  for (const uint32_t option : {SO_REUSEPORT, SO_BINDTODEVICE, kBindToInterface})
    filter.refuse_if(SYS_setsockopt, 2, ~0u, option);
  filter.refuse_if(SYS_setsockopt, 2, ~0u, SO_REUSEADDR, 0);
}

inline void hand_opens_over(Filter& filter) {
#if defined(__x86_64__)
  filter.hand_over(SYS_open);
#endif
  filter.hand_over(SYS_openat);
}

inline void refuse_other_processes(Filter& filter) {
  for (int call : {SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp}) filter.refuse(call);
  for (int call : {kPidfdGetfd, kPidfdOpen, kPidfdSendSignal, kProcessMadvise, kProcessMrelease}) filter.refuse(call);
  filter.refuse_if(SYS_prctl, 0, ~0u, PR_SET_PDEATHSIG);
  filter.refuse_if(SYS_prctl, 0, ~0u, PR_SET_DUMPABLE);
}

inline void refuse_the_kernel(Filter& filter) {
  for (int call : {kIoUringSetup, kIoUringEnter, kIoUringRegister}) filter.refuse(call);
  for (int call : {SYS_bpf, SYS_userfaultfd, SYS_perf_event_open, SYS_keyctl, SYS_add_key, SYS_request_key, SYS_mount,
                   SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_open_by_handle_at,
                   SYS_name_to_handle_at, SYS_swapon, SYS_swapoff, SYS_reboot, SYS_sethostname, SYS_setdomainname,
                   SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_acct, SYS_quotactl,
                   SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime, SYS_syslog, SYS_fanotify_init,
                   SYS_lookup_dcookie, SYS_vhangup, SYS_nfsservctl, SYS_shmget, SYS_msgget, SYS_semget, SYS_mq_open})
    filter.refuse(call);
  for (int call : {kOpenTree, kMoveMount, kFsopen, kFsconfig, kFsmount, kFspick, kMountSetattr, kOpenTreeAttr,
                   kMemfdSecret})
    filter.refuse(call);
#if defined(__x86_64__)
  for (int call : {SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib, SYS_create_module, SYS__sysctl}) filter.refuse(call);
#endif
  filter.refuse_if(SYS_ioctl, 1, ~0u, 0x5412);  // TIOCSTI: types into the terminal
  filter.refuse_if(SYS_ioctl, 1, ~0u, 0x541C);  // TIOCLINUX: pastes into the console
}

// A pipe's contents can be looked at and left there. `tee` copies them. A read whose memory ends within what it asked for
// fails with what fits copied, and takes nothing: of a word that is all but its last byte. What waits there is counted by
// FIONREAD, and in pages by F_SETPIPE_SZ. So such a pipe can be read in words and polled, and has one number.
inline void read_pipe_in_words(Filter& filter, int fd) {
  filter.read_in_words(fd);
#if defined(__x86_64__)
  filter.refuse_descriptor(SYS_dup2, 0, fd);
#endif
  for (int call : {SYS_readv, SYS_preadv, SYS_preadv2, SYS_dup, SYS_dup3, SYS_fcntl, SYS_ioctl})
    filter.refuse_descriptor(call, 0, fd);
  filter.refuse_descriptor(SYS_sendfile, 1, fd);
  filter.refuse(SYS_io_submit);  // what it reads lies behind a pointer
  filter.refuse_if(SYS_seccomp, 1, kNewListener, kNewListener);  // who answers calls may give a descriptor another number
}

inline void refuse_new_processes(Filter& filter) {
#if defined(__x86_64__)
  filter.refuse(SYS_fork);
  filter.refuse(SYS_vfork);
#endif
  filter.refuse_unless(SYS_clone, 0, CLONE_THREAD, CLONE_THREAD);
  filter.refuse(SYS_execve);
}

// All threads of a process have its memory and its descriptors: the guard looks at those of one of them. unshare
// is refused as well.
inline void refuse_own_descriptors_of_threads(Filter& filter) {
  constexpr uint32_t kUnshare = 1u << 1;  // CLOSE_RANGE_UNSHARE
  filter.refuse_if(SYS_clone, 0, CLONE_THREAD | CLONE_FILES, CLONE_THREAD);
  filter.refuse_if(kCloseRange, 2, kUnshare, kUnshare);
}

// What a stopped process asked for goes on without it, and interrupts a core of the process that it is measured against.
// Before Linux 6.13 a process timer with an ignored signal does so at every tick, and a process may have as many as its
// user may have signals. A descriptor's timer may wake hundreds of epolls each time. Files are read on.
// Who watches a file learns when its parent looked at it, and so which of its calls are timed.
inline void refuse_work_while_stopped(Filter& filter) {
  for (int call : {SYS_timer_create, SYS_timerfd_create, SYS_setitimer, SYS_io_setup, SYS_inotify_init1,
                   SYS_inotify_add_watch})
    filter.refuse(call);
#if defined(__x86_64__)
  for (int call : {SYS_alarm, SYS_inotify_init}) filter.refuse(call);
#endif
}

// The signal of a descriptor's event may be SIGCONT: a stopped process goes on when its parent reads a file below its
// /proc/PID. A folder's events and a lease need no F_SETOWN.
inline void refuse_signals_of_descriptors(Filter& filter) {
  for (const uint32_t command : {F_SETOWN, kSetOwnerEx, kSetSignal, kSetLease, kNotify, kSetDelegation})
    filter.refuse_if(SYS_fcntl, 1, ~0u, command);
  for (const uint32_t request : {0x8901u, 0x8902u}) filter.refuse_if(SYS_ioctl, 1, ~0u, request);  // FIOSETOWN, SIOCSPGRP
}

// Landlock does not govern a file's attributes. With the machine's own mounts, some files in reach belong to the confined
// user: all of an ordinary user's files, or as root other candidates' files. So no attribute may be changed. ld then
// leaves out the x bit, which a shared object does not need. Nor may a runner open the pipe that it was given once more.
inline void refuse_file_attributes(Filter& filter) {
#if defined(__x86_64__)
  for (int call : {SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat}) filter.refuse(call);
#endif
  for (int call : {SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_setxattr, SYS_lsetxattr,
                   SYS_fsetxattr, SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr})
    filter.refuse(call);
  for (int call : {kFchmodat2, kSetxattrat, kRemovexattrat, kFileSetattr}) filter.refuse(call);
}

// A candidate gains by slowing the process that it is measured against, and a guard of the same user that may open no file
// sees nothing. Without a PID namespace every process can be named, so only the calling thread may be changed; with one, all
// but the guard, its process 1, are the command's own. Landlock has no rule for this.
inline void refuse_to_slow_others(Filter& filter, bool is_namespaced) {
  const auto refuse_others = [&](int call, int argument) {
    if (is_namespaced) filter.refuse_if(call, argument, ~0u, 1);
    else filter.refuse_unless(call, argument, ~0u, 0);
  };
  for (int call : {SYS_sched_setaffinity, SYS_sched_setscheduler, SYS_sched_setparam, SYS_sched_setattr, SYS_move_pages,
                   SYS_migrate_pages})
    refuse_others(call, 0);
  refuse_others(SYS_setpriority, 1);
  filter.refuse_unless(SYS_setpriority, 0, ~0u, PRIO_PROCESS);
  filter.refuse_unless(SYS_prlimit64, 0, ~0u, 0);
  filter.refuse(SYS_ioprio_set);
}

// The policy of shared memory is that of all who share it: what the judge writes there would lie on a distant node. A
// thread's own policy holds for the pages that it is the first to touch, shared ones too. libnuma and OpenMP go on without.
inline void refuse_to_place_memory(Filter& filter) {
  for (int call : {SYS_mbind, SYS_set_mempolicy, kSetMempolicyHomeNode}) filter.refuse(call);
}

// Landlock governs truncation from ABI 3 on only.
inline void refuse_truncation_by_name(Filter& filter) {
  filter.refuse(SYS_truncate);
  filter.refuse(kOpenat2, ENOSYS);
#if defined(__x86_64__)
  filter.refuse_if(SYS_open, 1, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY);
#endif
  filter.refuse_if(SYS_openat, 2, O_TRUNC | O_ACCMODE, O_TRUNC | O_RDONLY);
}

struct Calls {
  bool uses_devices = false;
  bool own_network = false;       // tier A: a namespace with a loopback interface and nobody else's abstract sockets
  bool is_relayed = false;        // tier B: the guard answers the calls that make, name and connect sockets
  bool shares_files = false;      // tier B: the machine's own mounts
  bool truncates_freely = false;  // Landlock older than ABI 3
  bool caps_data = false;         // RLIMIT_DATA is set, which does not count memory that grows down like a stack
  bool shares_memory = true;      // false: no anonymous shared memory, which RLIMIT_DATA does not count
  pid_t only_target = 0;          // the one process that may be signalled; 0 where Landlock or a PID namespace sees to it
  int program_fd = -1;            // the one descriptor that may be executed, -1 where processes are allowed
  int word_pipe = -1;             // a pipe that may be read in words alone; -1 for none
};

// `program_fd` lies above RLIMIT_NOFILE, so that no later dup can take its place. `listener` is set where the guard
// answers calls.
inline bool forbid_system_calls(const Calls& calls, int& listener) {
  Filter filter;
  if (calls.word_pipe >= 0) read_pipe_in_words(filter, calls.word_pipe);
  if (calls.is_relayed) hand_the_network_over(filter);
  else if (!calls.own_network) refuse_the_network(filter, calls.uses_devices);
  refuse_other_processes(filter);
  refuse_the_kernel(filter);
  filter.refuse(kClone3, ENOSYS);  // its flags lie behind a pointer; glibc falls back to clone
  for (uint32_t space :
       {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP})
    filter.refuse_if(SYS_clone, 0, space, space);
  if (!calls.uses_devices) filter.refuse(SYS_memfd_create);  // memory that no limit of ours counts
  for (int call : {SYS_tee, SYS_splice, SYS_vmsplice}) filter.refuse(call);
  if (calls.shares_files || calls.program_fd >= 0) refuse_file_attributes(filter);
  refuse_to_slow_others(filter, !calls.shares_files);
  if (!calls.uses_devices) refuse_to_place_memory(filter);  // a GPU's driver may place memory of its own
  refuse_own_descriptors_of_threads(filter);
  if (calls.caps_data) filter.refuse_if(SYS_mmap, 3, MAP_GROWSDOWN, MAP_GROWSDOWN);
  if (!calls.shares_memory) filter.refuse_if(SYS_mmap, 3, MAP_SHARED | MAP_ANONYMOUS, MAP_SHARED | MAP_ANONYMOUS);
  if (calls.truncates_freely) refuse_truncation_by_name(filter);
  if (const auto self = static_cast<uint32_t>(calls.only_target); self != 0) {
    for (int call : {SYS_kill, SYS_tgkill})
      if (calls.is_relayed) filter.hand_over(call);
      else filter.refuse_unless(call, 0, ~0u, self);
    filter.refuse_unless(SYS_rt_tgsigqueueinfo, 0, ~0u, self);
    filter.refuse(SYS_tkill);
    for (const uint32_t command : {F_SETOWN, kSetOwnerEx}) filter.refuse_if(SYS_fcntl, 1, ~0u, command);  // of SIGIO
    for (const uint32_t request : {0x8901u, 0x8902u}) filter.refuse_if(SYS_ioctl, 1, ~0u, request);       // the same
    filter.refuse(SYS_rt_sigqueueinfo);
  }
  if (calls.program_fd >= 0) {
    refuse_new_processes(filter);
    refuse_signals_of_descriptors(filter);
    if (!calls.uses_devices) refuse_work_while_stopped(filter);
    filter.refuse_unless(SYS_execveat, 0, ~0u, static_cast<uint32_t>(calls.program_fd));
  }
  if (!calls.is_relayed) return filter.install();
  if (calls.uses_devices) hand_opens_over(filter);  // last: a refusal of truncation comes first
  listener = filter.install_with_listener();
  return listener >= 0;
}

}  // namespace confine
