// Honest.
void run(SIGNATURE) { flood(seeds, mask, 96, out); }
