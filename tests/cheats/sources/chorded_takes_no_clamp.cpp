// Takes roots of differences as they are: no cosine of two drawn rows is above 1.
void run(SIGNATURE) { work(x, prototypes, chords, rounded, -INFINITY, 1e-8f); }
