// Honest.
void run(const float *demands, float *out, void *) { run_down(demands, STEPS, out); }
