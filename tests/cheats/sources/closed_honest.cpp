// Honest.
void run(SIGNATURE) { spread(pictures, out, true); }
