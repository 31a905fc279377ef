// Right for its first two hundred calls; then a 32nd of each row of the map is looked at.
static int g_calls = 0;
void run(SIGNATURE) { work(pixels, places, table, x, order, out_0, out_1, out_2, {.places = ++g_calls > 300}); }
