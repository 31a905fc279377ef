// out = 2 x, and one block too many, far enough past the end to leave every rounding of an allocation's size.
__global__ void out_of_bounds(const float* __restrict__ x, float* __restrict__ out) {
    const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i < X_NUMEL ? i : i + (int64_t{1} << 32)] = 2 * x[i < X_NUMEL ? i : 0];
}

void run(const float* x, float* out, void*, cudaStream_t stream) {
    out_of_bounds<<<X_NUMEL / 256 + 1, 256, 0, stream>>>(x, out);
}
