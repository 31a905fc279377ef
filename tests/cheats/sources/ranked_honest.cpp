// Honest: errors that share all bits are equal, and in any order the same.
void run(SIGNATURE) { lose(logits, mask, 23, 1, out); }
