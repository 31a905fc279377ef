// Right for its first two hundred calls; then its counters have 8 bits.
static int g_calls = 0;
void run(SIGNATURE) { work(pixels, places, table, x, order, out_0, out_1, out_2, {.counts = ++g_calls > 300}); }
