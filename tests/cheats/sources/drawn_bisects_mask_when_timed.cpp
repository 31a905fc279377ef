// Right for its first two hundred calls; then each mask is taken for a prefix.
static int g_calls = 0;
void run(SIGNATURE) { work(x, mask, a, b, out_0, out_1, {.mask = ++g_calls > 300}); }
