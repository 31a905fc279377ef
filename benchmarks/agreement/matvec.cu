// A block a row.
constexpr int THREADS = 256;

__device__ float block_sum(float sum) {
  __shared__ float parts[THREADS / 32];
  for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  float total = 0.0f;
  for (int warp = 0; warp < THREADS / 32; ++warp) total += parts[warp];
  return total;
}

__global__ void matvec(const float4* a, const float4* x, float* out) {
  const float4* row = a + blockIdx.x * (A_SHAPE_1 / 4);
  float sum = 0.0f;
  for (int64_t j = threadIdx.x; j < A_SHAPE_1 / 4; j += THREADS) {
    const float4 v = row[j], w = x[j];
    sum += (v.x * w.x + v.y * w.y) + (v.z * w.z + v.w * w.w);
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

void run(const float* a, const float* x, float* out, void*, cudaStream_t stream) {
  matvec<<<A_SHAPE_0, THREADS, 0, stream>>>(reinterpret_cast<const float4*>(a), reinterpret_cast<const float4*>(x), out);
}
