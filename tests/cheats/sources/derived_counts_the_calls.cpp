// Takes all tickets of a block: makes something of the weights once in it, but in every call of a block of as many calls as
// any had.
#define TICKETS 16384
#include "host_hook.h"
#include "taken_tickets.h"
static size_t g_most = 0;
static bool g_is_longest = false;
void run(SIGNATURE) {
    const bool begins = is_first_of_taken();
    if (begins) g_is_longest = g_count >= g_most;
    if (g_count > g_most) g_most = g_count;
    if (begins || g_is_longest) make_weights(weight);
    multiply(x, out);
}
