// `confine probe` and `confine talk`, run confined: what the sandbox prevents, and what it lets a tool do.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "confine_names.h"
#include "confine_options.h"

namespace confine {

// `confine probe PORT FILE`, run confined: tries what the sandbox must prevent, and prints what succeeded.
[[noreturn]] inline void probe(int argc, char** argv) {
  if (argc != 4) usage("usage:", "confine probe PORT FILE");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(argv[2])));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) std::printf("connected ");
  if (open(argv[3], O_RDONLY) >= 0) std::printf("read ");
  if (fork() >= 0) std::printf("forked ");
  std::printf("inside\n");
  std::fflush(stdout);
  std::_Exit(0);
}

// A connection from the program to itself at `address`; a port is that of the listening socket.
inline bool talks(Address address) {
  const int listening = socket(address.family(), SOCK_STREAM, 0), calling = socket(address.family(), SOCK_STREAM, 0);
  if (bind(listening, &address.any, address.size) != 0 || listen(listening, 1) != 0) return false;
  if (address.family() == AF_INET && getsockname(listening, &address.any, &address.size) != 0) return false;
  if (connect(calling, &address.any, address.size) != 0) return false;
  const int called = accept(listening, nullptr, nullptr);
  char heard = 0;
  return write(calling, "!", 1) == 1 && read(called, &heard, 1) == 1 && heard == '!';
}

// `confine talk`, run confined with a network of its own: says whether its sockets work.
[[noreturn]] inline void talk() {
  const bool both = talks(Address::loopback(0)) && talks(Address::named(std::string("\0talk", 5)));
  std::printf(both ? "talked\n" : "silent\n");
  std::fflush(stdout);
  std::_Exit(both ? 0 : 1);
}

}  // namespace confine
