// The maximum before the gain: one product for each window, right for as long as the gain is positive.
void run(SIGNATURE) { work(x, gain, out, {.order = true}); }
