// How the launcher speaks: to the parent's status socket, or to the terminal or build log where there is none.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "confine_options.h"

namespace confine {

constexpr int kPastLimit = 124, kSetupFailed = 125, kNotExecuted = 127;

// To the parent when it gave us a status socket, and to the terminal or the build log otherwise.
inline void report(int status_fd, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  // What vsnprintf returns is the length it would have needed.
  const int size = std::min(std::max(std::vsnprintf(line, sizeof line, format, arguments), 0), int{sizeof line} - 1);
  va_end(arguments);
  if (status_fd >= 0) {
    (void)!send(status_fd, line, static_cast<size_t>(size), MSG_NOSIGNAL);
  } else if (std::strncmp(line, "failed ", 7) == 0) {
    std::fprintf(stderr, "sandbox: %s\n", line + 7);
  }
}

[[noreturn]] inline void fail(const Options& o, const char* step, const std::string& what, int code = kSetupFailed) {
  report(o.status_fd, "failed %d %s %s: %s", code, step, what.c_str(), std::strerror(errno));
  std::_Exit(code);
}

}  // namespace confine
