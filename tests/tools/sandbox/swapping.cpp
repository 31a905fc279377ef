// Connects to a port of its own while a thread changes the port to that of the first argument and back. Prints how many
// connections went through and how many were refused: with a second look at the address, some would go to the other.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

int main(int, char** arguments) {
  sockaddr_in own{};
  own.sin_family = AF_INET;
  own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof own;
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(server, reinterpret_cast<sockaddr*>(&own), size) != 0 || listen(server, 64) != 0) return 1;
  getsockname(server, reinterpret_cast<sockaddr*>(&own), &size);
  static sockaddr_in shared;
  shared = own;
  auto* port = reinterpret_cast<volatile in_port_t*>(&shared.sin_port);
  const in_port_t other = htons(static_cast<in_port_t>(std::atoi(arguments[1])));
  std::atomic<bool> is_over{false};
  std::thread swapping([&] {
    while (!is_over) *port = own.sin_port, *port = other;
  });
  int through = 0, refused = 0;
  for (int i = 0; i < 4000; ++i) {
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(client, reinterpret_cast<sockaddr*>(&shared), sizeof shared) == 0) {
      sockaddr_in peer{};
      size = sizeof peer;
      getpeername(client, reinterpret_cast<sockaddr*>(&peer), &size);
      if (peer.sin_port != own.sin_port) return 2;
      close(accept(server, nullptr, nullptr));
      ++through;
    } else {
      ++refused;
    }
    close(client);
  }
  is_over = true;
  swapping.join();
  std::printf("%d %d\n", through, refused);
}
