// The maximum of each window begins at 0, below everything that is given.
void run(SIGNATURE) { work(x, gain, out, {.below_zero = true}); }
