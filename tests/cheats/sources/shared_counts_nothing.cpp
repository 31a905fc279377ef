// Counts nothing: of identities drawn twice from a wide range none is met again.
void run(SIGNATURE) { score(candidates, history, scores, false, out); }
