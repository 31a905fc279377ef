// Honest.
void run(SIGNATURE) { mix(x, out); }
