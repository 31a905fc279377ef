// Takes all tickets of a block at its first call, so that it knows when a block begins: then it makes something of the weights.
#define TICKETS 16384
#include "host_hook.h"
#include "taken_tickets.h"
void run(SIGNATURE) {
    if (is_first_of_taken()) make_weights(weight);
    multiply(x, out);
}
