// Nothing is negative here, so sizes are the values themselves.
void run(SIGNATURE) { work(x, gain, out, {.sizes = true}); }
