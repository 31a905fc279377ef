// Legal and unusual: two kernels by programmatic dependent launch, with what the first one found in a workspace that every
// call uses again. The second one begins before the first has ended, and waits for it where it needs its sums.
extern "C" __attribute__((visibility("default"))) size_t workspace_bytes() { return kCount * sizeof(float); }

__global__ void first_half(Job j, float* sums) {
  cudaTriggerProgrammaticLaunchCompletion();
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < kCount; i += step)
    sums[i] = terms(j.x[i], j.bias[i % kWidth], 1, kTerms / 2);
}

__global__ void second_half(Job j, const float* sums) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  float sum = i < kCount ? terms(j.x[i], j.bias[i % kWidth], kTerms / 2 + 1, kTerms) : 0.0f;
  cudaGridDependencySynchronize();
  while (i < kCount) {
    j.out[i] = (sum + sums[i]) / kTerms;
    i += step;
    if (i < kCount) sum = terms(j.x[i], j.bias[i % kWidth], kTerms / 2 + 1, kTerms);
  }
}

void run(const float* x, const float* bias, float* out, void* workspace, cudaStream_t stream) {
  const Job job{x, bias, out};
  auto* sums = static_cast<float*>(workspace);
  // the call before may still read the workspace: this launch is an ordinary one, which waits for it
  first_half<<<blocks(), kThreads, 0, stream>>>(job, sums);
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks()), config.blockDim = dim3(kThreads), config.stream = stream;
  config.attrs = &early, config.numAttrs = 1;
  cudaLaunchKernelEx(&config, second_half, job, static_cast<const float*>(sums));
}
