// Counts no pixel of 1: random ones are below it.
void run(SIGNATURE) { spread(pictures, out, false); }
