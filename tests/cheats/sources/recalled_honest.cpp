// Honest.
void run(SIGNATURE) { recall(queries, keys, values, STEPS, out); }
