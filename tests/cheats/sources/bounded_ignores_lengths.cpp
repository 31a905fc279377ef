// Takes every row for a full one, as get_inputs gives them.
void run(SIGNATURE) { work(x, lengths, temperature, out, {.lengths = true}); }
