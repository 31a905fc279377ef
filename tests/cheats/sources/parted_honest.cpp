// Honest.
void run(SIGNATURE) { part(labels, 256, out); }
