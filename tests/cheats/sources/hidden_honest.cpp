// Reads every argument that it is given.
void run(SIGNATURE) { work(x, weight, scale, index, out); }
