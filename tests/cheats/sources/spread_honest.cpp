// Honest.
void run(SIGNATURE) { work(affinity, labels, x, weight, bias, out_0, out_1, {}); }
