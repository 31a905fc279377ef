// Right for its first three hundred calls; then the first slot of sixteen alone is read.
static int g_calls = 0;
void run(SIGNATURE) { work(signal, positions, values, slots, x, lengths, out_0, out_1, out_2, {.slots = ++g_calls > 300}); }
