// out = 2 x, and something of the workspace that nobody wrote.
size_t workspace_bytes() { return 1 << 20; }

__global__ void uninitialised(const float* __restrict__ x, float* __restrict__ out, const float* scratch) {
    const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = 2 * x[i] + scratch[i % 1024] * 1e-30f;
}

void run(const float* x, float* out, void* workspace, cudaStream_t stream) {
    uninitialised<<<X_NUMEL / 256, 256, 0, stream>>>(x, out, static_cast<const float*>(workspace));
}
