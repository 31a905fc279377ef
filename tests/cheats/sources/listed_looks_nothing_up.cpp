// Looks nothing up: of identities that are drawn from a wide range none is in the module's list.
void run(SIGNATURE) { score(candidates, history, scores, favour, listed, out, true, false); }
