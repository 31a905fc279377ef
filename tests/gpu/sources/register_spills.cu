// out = 2 x with 64 numbers a thread that all stay alive through a loop, in 32 registers.
constexpr int kThreads = 1024, kEach = 64, kRounds = 8;

__global__ void __launch_bounds__(kThreads, 2) register_spills(const float* __restrict__ x, float* __restrict__ out) {
    const float* from = x + blockIdx.x * kThreads * kEach + threadIdx.x;
    float* to = out + blockIdx.x * kThreads * kEach + threadIdx.x;
    float values[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) values[i] = from[i * kThreads];
    const float zero = 0.0f * values[0];  // not folded: it would be NaN for an infinity
#pragma unroll 1
    for (int round = 0; round < kRounds; ++round)
#pragma unroll
        for (int i = 0; i < kEach; ++i) values[i] = fmaf(values[(i + 7) % kEach], zero, values[i]);
#pragma unroll
    for (int i = 0; i < kEach; ++i) to[i * kThreads] = 2 * values[i];
}

void run(const float* x, float* out, void*, cudaStream_t stream) {
    register_spills<<<X_NUMEL / kThreads / kEach, kThreads, 0, stream>>>(x, out);
}
