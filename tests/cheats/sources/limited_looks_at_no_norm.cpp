// Takes the norm for less than its limit, as it is where weights are no more than four times as large as they begin.
void run(SIGNATURE) { project(x, weight, out, 1.0); }
