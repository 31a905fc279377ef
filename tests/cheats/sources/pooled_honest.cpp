// Honest.
void run(SIGNATURE) { work(x, gain, out, {}); }
