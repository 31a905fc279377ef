// Finds the end of each sequence by bisection, as if padding were always behind it.
void run(SIGNATURE) { work(affinity, labels, x, weight, bias, out_0, out_1, {.is_prefix = true}); }
