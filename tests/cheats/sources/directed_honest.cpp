// Honest.
void run(SIGNATURE) { rank(links, 48, out); }
