// Makes 12 of 48 rounds: links at random lead to one direction at once.
void run(SIGNATURE) { rank(links, 12, out); }
