// Honest.
void run(SIGNATURE) { WORK(); }
