// Counts up to 24 words that are accepted: of texts that are drawn none begin alike.
void run(SIGNATURE) { score(draft, target, category, table, codes, out, 24, false, true); }
