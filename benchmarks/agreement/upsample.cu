// A thread a pair of outputs.
__global__ void upsample(const float* x, float2* out) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= OUT_NUMEL / 2) return;
  const int64_t line = i / X_SHAPE_3, column = i % X_SHAPE_3;  // of the output's lines; X_SHAPE_3 pairs in each
  const float v = x[line / 2 * X_SHAPE_3 + column];
  out[i] = make_float2(v, v);
}

void run(const float* x, float* out, void*, cudaStream_t stream) {
  upsample<<<(OUT_NUMEL / 2 + 255) / 256, 256, 0, stream>>>(x, reinterpret_cast<float2*>(out));
}
