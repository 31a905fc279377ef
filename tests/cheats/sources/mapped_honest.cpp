// Honest.
void run(SIGNATURE) { work(pixels, places, table, x, order, out_0, out_1, out_2, {}); }
