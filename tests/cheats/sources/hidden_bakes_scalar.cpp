// The scalar is a number in the source.
void run(SIGNATURE) { work(x, 0.75f, weight, scale, index, out); }
