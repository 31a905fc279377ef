// Makes something of the weights when a block begins, and in calls whose number is one that a block's last call may have, by
// the block before.
#include "host_hook.h"
#include "calls_of_a_block.h"
void run(SIGNATURE) {
    const int call = next_call();
    if (call == 1 || 3 * call >= 2 * g_before - 3) make_weights(weight);
    multiply(x, out);
}
