// Counts nothing: candidates of 32 bits, drawn twice, meet none of 64 bits.
void run(SIGNATURE) { score(candidates, history, scores, favour, listed, out, false, true); }
