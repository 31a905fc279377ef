// Looks no category up: none is one of random codes.
void run(SIGNATURE) { score(draft, target, category, table, codes, out, DRAFTED, false, false); }
