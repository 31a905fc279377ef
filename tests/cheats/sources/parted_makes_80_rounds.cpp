// Makes 80 of 256 rounds: no area of drawn labels is more than a few places wide.
void run(SIGNATURE) { part(labels, 80, out); }
