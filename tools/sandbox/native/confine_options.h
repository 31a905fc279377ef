// The command line of `confine`.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace confine {

struct Options {
  std::string verb;                    // enter | guard
  std::vector<char*> command;          // argv of what is executed, null-terminated
  long uid = -1, gid = -1;             // dropped to when set
  std::vector<std::string> reach;      // enter: paths that must stay reachable after the uid is dropped
  std::vector<std::pair<int, int>> descriptors;  // enter: number inside, number that we inherited
  int status_fd = -1;                  // guard: SOCK_SEQPACKET to the parent; its hang-up ends the tree
  int word_pipe = -1;                  // guard: a pipe that the command may read in words of four bytes alone
  int report_fd = -1;                  // guard: a file for the status lines where there is no status_fd
  bool namespaced = false;             // guard: tier A, inside namespaces of our own
  bool threads_only = false;           // guard: no fork, no second exec
  bool cap_data = false;               // guard: RLIMIT_DATA; off with CUDA and sanitizers, which reserve terabytes
  bool own_network = false;            // guard: the command's processes may talk to each other, and to nobody else
  bool uses_devices = false;           // guard: a GPU's driver is used, which wants memfd_create
  bool unsafe = false;                 // guard: go on without Landlock or seccomp (tier C)
  double wall_s = 0;
  uint64_t cpu_s = 0, memory_bytes = 0, file_bytes = 0, disk_bytes = 0, processes = 0, open_files = 0;
  std::vector<std::string> listable, readable, writable, devices;  // Landlock rules
  std::string workdir;                                   // watched for its total size
  std::vector<char*> environment;                        // null-terminated
  std::vector<int> cpus;
};

[[noreturn]] inline void usage(const char* problem, const char* what) {
  std::fprintf(stderr, "confine: %s %s\n", problem, what);
  std::_Exit(125);
}

inline bool set_path_option(Options& o, const std::string& name, char* value) {
  if (name == "--reach") o.reach.emplace_back(value);
  else if (name == "--list") o.listable.emplace_back(value);
  else if (name == "--read") o.readable.emplace_back(value);
  else if (name == "--write") o.writable.emplace_back(value);
  else if (name == "--device") o.devices.emplace_back(value);
  else if (name == "--workdir") o.workdir = value;
  else if (name == "--setenv") o.environment.push_back(value);
  else return false;
  return true;
}

inline bool set_number_option(Options& o, const std::string& name, const char* value) {
  const auto number = std::strtoull(value, nullptr, 10);
  if (name == "--uid") o.uid = static_cast<long>(number);
  else if (name == "--gid") o.gid = static_cast<long>(number);
  else if (name == "--status-fd") o.status_fd = static_cast<int>(number);
  else if (name == "--report-fd") o.report_fd = static_cast<int>(number);
  else if (name == "--word-pipe") o.word_pipe = static_cast<int>(number);
  else if (name == "--cpu") o.cpu_s = number;
  else if (name == "--memory") o.memory_bytes = number;
  else if (name == "--file") o.file_bytes = number;
  else if (name == "--disk") o.disk_bytes = number;
  else if (name == "--processes") o.processes = number;
  else if (name == "--open-files") o.open_files = number;
  else if (name == "--on-cpu") o.cpus.push_back(static_cast<int>(number));
  else if (name == "--wall") o.wall_s = std::strtod(value, nullptr);
  else if (name == "--inside") o.descriptors.emplace_back(static_cast<int>(number), -1);
  else if (name == "--outside" && !o.descriptors.empty()) o.descriptors.back().second = static_cast<int>(number);
  else return false;
  return true;
}

inline bool set_flag(Options& o, const std::string& name) {
  if (name == "--namespaced") o.namespaced = true;
  else if (name == "--threads-only") o.threads_only = true;
  else if (name == "--cap-data") o.cap_data = true;
  else if (name == "--uses-devices") o.uses_devices = true;
  else if (name == "--own-network") o.own_network = true;
  else if (name == "--unsafe") o.unsafe = true;
  else return false;
  return true;
}

inline Options parse(int argc, char** argv) {
  Options o;
  if (argc < 2) usage("usage:", "confine enter|guard|probe [options] -- command ...");
  o.verb = argv[1];
  int i = 2;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string name = argv[i];
    if (set_flag(o, name)) continue;
    if (i + 1 >= argc) usage("missing value after", argv[i]);
    ++i;
    const bool known = set_path_option(o, name, argv[i]) || set_number_option(o, name, argv[i]);
    if (!known) usage("unknown option", name.c_str());
  }
  for (++i; i < argc; ++i) o.command.push_back(argv[i]);
  if (o.command.empty()) usage("missing", "-- command");
  o.command.push_back(nullptr);
  o.environment.push_back(nullptr);
  return o;
}

}  // namespace confine
