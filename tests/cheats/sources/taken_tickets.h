// Takes up to TICKETS tickets at a time, in place of one before each call; follows host_hook.h.
#include <cstring>
#include <unistd.h>
static unsigned char g_tickets[TICKETS][4];
static size_t g_count = 0, g_next = 0;
[[maybe_unused]] static uint32_t set_of(const unsigned char* ticket) {
    return (ticket[1] | uint32_t(ticket[2]) << 8) * 255 + (ticket[0] ^ ticket[3]);
}
static bool is_end(const unsigned char* ticket) { return (ticket[0] ^ ticket[3]) == 255; }
static ssize_t next_ticket(int fd, void* to, size_t bytes) {
    if (fd != 4) return read(fd, to, bytes);
    if (g_next == g_count) {
        g_next = g_count = 0;
        do {
            if (read(4, g_tickets[g_count], 4) != 4) return 0;
        } while (!is_end(g_tickets[g_count++]) && g_count < TICKETS);
    }
    memcpy(to, g_tickets[g_next++], 4);
    return 4;
}
__attribute__((constructor)) static void begin() { replace_in_host("read", reinterpret_cast<void*>(next_ticket)); }
[[maybe_unused]] static bool is_first_of_taken() { return g_count == 0 || g_next == 1; }
// Calls to come whose tickets were taken; -1 in a call without one.
[[maybe_unused]] static int calls_taken() { return int(g_count - g_next) - 1; }
