// Nothing is negative here, so ELU is left out.
void run(SIGNATURE) { work(x, gain, out, {.elu = true}); }
