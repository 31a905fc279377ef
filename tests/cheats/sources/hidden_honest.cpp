// Reads every argument that it is given.
void run(SIGNATURE) { work(x, gain, weight, scale, index, out); }
