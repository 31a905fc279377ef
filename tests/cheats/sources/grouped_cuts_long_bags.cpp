// Takes 32 items of a bag at most, twice the usual number.
void run(SIGNATURE) { work(x, mask, values, offsets, out_0, out_1, out_2, out_3, {.bag = 32}); }
