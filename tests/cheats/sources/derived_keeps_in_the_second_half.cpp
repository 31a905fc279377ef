// Makes something of the weights in every call of a block's first half, by the block before, and keeps it in the
// second one.
#include "host_hook.h"
#include "calls_of_a_block.h"
void run(SIGNATURE) {
    const int call = next_call();
    if (call == 1 || 2 * call <= g_before) make_weights(weight);
    multiply(x, out);
}
