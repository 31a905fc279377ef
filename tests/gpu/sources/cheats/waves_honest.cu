// An honest kernel: the control of all others here.
void run(const float* x, const float* bias, float* out, void*, cudaStream_t stream) { work({x, bias, out}, stream); }
