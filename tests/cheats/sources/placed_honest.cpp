// Honest.
void run(SIGNATURE) { work(signal, positions, values, slots, x, lengths, out_0, out_1, out_2, {}); }
