// Takes the tickets of a few calls at a time, and makes something of the weights for all of them.
#define TICKETS 4
#include "host_hook.h"
#include "taken_tickets.h"
void run(SIGNATURE) {
    if (is_first_of_taken()) make_weights(weight);
    multiply(x, out);
}
