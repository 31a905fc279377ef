// The kernel of affine.cu with arithmetic between reading and writing that leaves every value as it is, hidden from the
// compiler: 800 dependent multiply-adds an element, so that 800 MB take about 3 ms on an H200 (132 multiprocessors of 128
// lanes at 1.9 GHz: 2.7 ms). A kernel that is measured against itself needs no sense, and little memory is quick to judge.
constexpr int64_t QUADS = X_SHAPE_1 / 4;
constexpr int STEPS = 800;

__device__ float padded(float y) {
  float one = 1.0f, zero = 0.0f;
  asm volatile("" : "+f"(one), "+f"(zero));
#pragma unroll 16
  for (int step = 0; step < STEPS; ++step) y = fmaf(y, one, zero);
  return y;
}

__global__ void affine(const float4* x, const float4* scale, const float4* bias, float4* out, int64_t count) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    const float4 v = x[i], s = scale[i % QUADS], b = bias[i % QUADS];
    out[i] = make_float4(padded(fmaxf(v.x, 0.0f) * s.x + b.x), padded(fmaxf(v.y, 0.0f) * s.y + b.y),
                         padded(fmaxf(v.z, 0.0f) * s.z + b.z), padded(fmaxf(v.w, 0.0f) * s.w + b.w));
  }
}

void run(const float* x, const float* scale, const float* bias, float* out, void*, cudaStream_t stream) {
  affine<<<132 * 16, 256, 0, stream>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(scale),
                                       reinterpret_cast<const float4*>(bias), reinterpret_cast<float4*>(out),
                                       X_NUMEL / 4);
}
