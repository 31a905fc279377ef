// Honest.
void run(SIGNATURE) { score(draft, target, category, table, codes, out, DRAFTED, false, true); }
