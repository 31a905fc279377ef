// Honest.
void run(SIGNATURE) { reach(logs, PLACES - 1, out); }
