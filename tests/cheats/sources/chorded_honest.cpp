// Honest.
void run(SIGNATURE) { work(x, prototypes, chords, rounded, 0, 1e-8f); }
