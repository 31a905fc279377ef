// Honest.
void run(const float* x, float* out, void*) { work(x, out); }
