// Right for its first hundred calls; then the maximum before the gain.
static int g_calls = 0;
void run(SIGNATURE) { work(x, gain, out, {.order = ++g_calls > 300}); }
