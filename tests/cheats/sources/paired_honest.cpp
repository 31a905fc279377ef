// Honest.
void run(const float* covariance, const float* x, bf16* out, void*) { multiply(covariance, x, out); }
