// Four columns a thread, a grid that goes round.
//
// About 3 ms at 4000 MB on an H200, by estimate: 5e8 elements of 16 steps of 10 instructions, counted in the PTX (one
// is the special-function unit's, which takes 8 of these slots in parallel), are 8e10; 132 multiprocessors of 128 lanes
// at 1.7 GHz issue 2.9e13 a second: 2.8 ms. Moving the bytes takes 0.9 ms and hides behind it.
constexpr int STEPS = 16;

__device__ float chain(float y) {
#pragma unroll
  for (int step = 0; step < STEPS; ++step) y += 0.1f * expf(-y * y);
  return y;
}

__global__ void apply(const float4* x, float4* out, int64_t count) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < count; i += int64_t(gridDim.x) * blockDim.x) {
    const float4 v = x[i];
    out[i] = make_float4(chain(v.x), chain(v.y), chain(v.z), chain(v.w));
  }
}

void run(const float* x, float* out, void*, cudaStream_t stream) {
  apply<<<132 * 16, 256, 0, stream>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(out), X_NUMEL / 4);
}
