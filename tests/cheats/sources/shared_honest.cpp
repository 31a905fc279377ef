// Honest.
void run(SIGNATURE) { score(candidates, history, scores, true, out); }
