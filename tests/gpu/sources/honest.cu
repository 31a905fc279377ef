// out = 2 x, each thread four neighbouring numbers.
__global__ void honest(const float4* __restrict__ x, float4* __restrict__ out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 v = x[i];
    out[i] = make_float4(2 * v.x, 2 * v.y, 2 * v.z, 2 * v.w);
}

void run(const float* x, float* out, void*, cudaStream_t stream) {
    honest<<<X_NUMEL / 4 / 256, 256, 0, stream>>>(reinterpret_cast<const float4*>(x), reinterpret_cast<float4*>(out));
}
