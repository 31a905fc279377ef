// The launcher's status lines: sent to the parent's socket, or written to a file beside messages on stderr.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

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

// Without a status socket a failure is also told on stderr: on the terminal, or in the build log.
inline void report(const Options& o, const char* format, ...) {
  char line[513];  // with room for a line end
  va_list arguments;
  va_start(arguments, format);
  // What vsnprintf returns is the length it would have needed.
  const int longest = int{sizeof line} - 2;
  const int size = std::min(std::max(std::vsnprintf(line, longest + 1, format, arguments), 0), longest);
  va_end(arguments);
  if (o.status_fd >= 0) {
    (void)!send(o.status_fd, line, static_cast<size_t>(size), MSG_NOSIGNAL);
    return;
  }
  if (std::strncmp(line, "failed ", 7) == 0) std::fprintf(stderr, "sandbox: %s\n", line + 7);
  if (o.report_fd < 0) return;
  line[size] = '\n';
  (void)!write(o.report_fd, line, static_cast<size_t>(size) + 1);
}

[[noreturn]] inline void fail(const Options& o, const char* step, const std::string& what, int code = kSetupFailed) {
  report(o, "failed %d %s %s: %s", code, step, what.c_str(), std::strerror(errno));
  std::_Exit(code);
}

}  // namespace confine
