// Honest.
void run(const float *steps, float *out, void *) { ring(steps, STEPS, out); }
