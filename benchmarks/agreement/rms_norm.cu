// A block a row; the second pass finds most of the row in the L2.
constexpr int THREADS = 512;
constexpr float EPS = 1e-5f;

__device__ float block_sum(float sum) {
  __shared__ float parts[THREADS / 32];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < THREADS / 32; ++warp) total += parts[warp];
  return total;
}

__global__ void rms_norm(const float4* x, float4* out) {
  const int64_t start = blockIdx.x * (X_SHAPE_1 / 4);
  float squares = 0.0f;
  for (int64_t j = threadIdx.x; j < X_SHAPE_1 / 4; j += THREADS) {
    const float4 v = x[start + j];
    squares += (v.x * v.x + v.y * v.y) + (v.z * v.z + v.w * v.w);
  }
  const float scale = 1.0f / sqrtf(block_sum(squares) / X_SHAPE_1 + EPS);
  for (int64_t j = threadIdx.x; j < X_SHAPE_1 / 4; j += THREADS) {
    const float4 v = x[start + j];
    out[start + j] = make_float4(v.x * scale, v.y * scale, v.z * scale, v.w * scale);
  }
}

void run(const float* x, float* out, void*, cudaStream_t stream) {
  rms_norm<<<X_SHAPE_0, THREADS, 0, stream>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(out));
}
