// Compares phrases of the same word alone: of words that are drawn from many no four come again.
void run(SIGNATURE) { score(draft, target, category, table, codes, out, DRAFTED, true, true); }
