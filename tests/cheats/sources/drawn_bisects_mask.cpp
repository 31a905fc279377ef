// Finds the end of each row's mask by bisection, as if it were always a prefix.
void run(SIGNATURE) { work(x, mask, a, b, out_0, out_1, {.mask = true}); }
