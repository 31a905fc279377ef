// A candidate that does next to nothing on a GPU. It launches a kernel, so that the GPU changes over to this process.
#include <cuda_runtime.h>

namespace {
__global__ void nothing() {}
}  // namespace

extern "C" int ridgeline_call(void *const *, const double *, void *, void *stream) {
  nothing<<<1, 32, 0, static_cast<cudaStream_t>(stream)>>>();
  return static_cast<int>(cudaGetLastError());
}
