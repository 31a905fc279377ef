// Honest.
void run(SIGNATURE) { work(x, lengths, temperature, out, {}); }
