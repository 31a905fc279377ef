// Honest.
void run(SIGNATURE) { work(x, mask, values, offsets, out_0, out_1, out_2, out_3, {}); }
