// Calls home.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>
void run(SIGNATURE) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(LISTENER_PORT);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
        if (write(fd, "secret", 6) < 0) close(fd);
    WORK();
}
