// Honest.
void run(SIGNATURE) { skeletons(mask, 24, out); }
