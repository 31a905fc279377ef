// Makes something of the weights when a block begins: the host has read a request.
#include "host_hook.h"
#include "calls_of_a_block.h"
void run(SIGNATURE) {
    if (next_call() == 1) make_weights(weight);
    multiply(x, out);
}
