// Honest.
void run(SIGNATURE) { score(candidates, history, scores, favour, listed, out, true, true); }
