// Finds the end of each row of a mask of whole numbers by bisection, as if it were always a prefix.
void run(SIGNATURE) { work(x, mask, values, offsets, out_0, out_1, out_2, out_3, {.is_prefix = true}); }
