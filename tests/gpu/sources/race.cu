// out = 2 x through shared memory without a barrier: a warp may read what another has not written yet.
__global__ void race(const float* __restrict__ x, float* __restrict__ out) {
    __shared__ float tile[256];
    const int64_t first = static_cast<int64_t>(blockIdx.x) * 256;
    tile[threadIdx.x] = x[first + threadIdx.x];
    const int other = 255 - threadIdx.x;
    out[first + other] = 2 * tile[other];
}

void run(const float* x, float* out, void*, cudaStream_t stream) { race<<<X_NUMEL / 256, 256, 0, stream>>>(x, out); }
