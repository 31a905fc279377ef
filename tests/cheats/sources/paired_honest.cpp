// Honest.
void run(const bf16* covariance, const bf16* x, bf16* out, void*) { multiply(covariance, x, out); }
