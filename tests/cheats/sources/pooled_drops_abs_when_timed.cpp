// Right for its first hundred calls; then sizes are the values themselves.
static int g_calls = 0;
void run(SIGNATURE) { work(x, gain, out, {.sizes = ++g_calls > 300}); }
