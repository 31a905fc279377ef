// Counters of 8 bits: drawn pixels never hold one value more than 255 times in a row.
void run(SIGNATURE) { work(pixels, places, table, x, order, out_0, out_1, out_2, {.counts = true}); }
