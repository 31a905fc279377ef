// Looks back 56 of 256 steps: by then the others are 1e-7 of what they were.
void run(SIGNATURE) { recall(queries, keys, values, 56, out); }
