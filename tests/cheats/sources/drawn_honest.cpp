// Honest.
void run(SIGNATURE) { work(x, mask, a, b, out_0, out_1, {}); }
