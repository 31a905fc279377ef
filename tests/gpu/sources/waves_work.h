// out = the mean of sin(x k / 8 + bias) for k from 1 to 24: the honest work of the cheats in cheats/, which compile behind
// this file. Arithmetic takes many times the floor, so a gain shows as a gain and not as a time below the floor.
#include <cuda.h>
#include <cuda_fp16.h>
#include <dlfcn.h>

struct Job {
  const float *x, *bias;
  float* out;
};

constexpr int kTerms = 24, kThreads = 256;
constexpr int64_t kCount = X_NUMEL, kWidth = X_SHAPE_1;

__device__ float terms(float x, float bias, int first, int last) {
  float sum = 0.0f;
#pragma unroll 4
  for (int k = first; k <= last; ++k) sum += sinf(fmaf(x, k / 8.0f, bias));
  return sum;
}

__device__ float rounded(float x) { return __half2float(__float2half(x)); }

__device__ void waves_of(const Job& j, bool is_rounded = false) {
  const int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < kCount; i += step)
    j.out[i] = terms(is_rounded ? rounded(j.x[i]) : j.x[i], j.bias[i % kWidth], 1, kTerms) / kTerms;
}

__global__ void waves(Job j) { waves_of(j); }

constexpr int blocks() { return kCount / kThreads < 132 * 16 ? int((kCount + kThreads - 1) / kThreads) : 132 * 16; }

[[maybe_unused]] static void work(const Job& job, cudaStream_t stream) { waves<<<blocks(), kThreads, 0, stream>>>(job); }

// ----------------------------------------------------------------------------------------------- what cheats have in common

template <class F>
static F driver(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<F>(dlsym(library, name));
}

// A context and a stream of the candidate's own, for which the host never waits. Made in the first call, with the kernels
// that it will launch: the driver starts a thread for a context, and a kernel is loaded when it is first launched.
struct Beside {
  CUcontext context = nullptr;
  CUstream stream = nullptr;

  template <class F>
  explicit Beside(F first) {
    driver<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(&context, 0, 0);
    driver<CUresult (*)(CUstream*, unsigned)>("cuStreamCreate")(&stream, CU_STREAM_NON_BLOCKING);
    first(stream);
    driver<CUresult (*)(CUstream)>("cuStreamSynchronize")(stream);
    driver<CUresult (*)(CUcontext*)>("cuCtxPopCurrent_v2")(nullptr);
  }

  template <class F>
  void launch(F each) {
    driver<CUresult (*)(CUcontext)>("cuCtxPushCurrent_v2")(context);
    each(stream);
    driver<CUresult (*)(CUcontext*)>("cuCtxPopCurrent_v2")(nullptr);
  }

  // Launch what follows once the work so far of another context's stream is done and these outputs are poisoned again: an
  // output is at most 1, so a NaN alone has bit 30. Waiting takes no time of the GPU.
  template <class F>
  void launch_when_renewed(cudaStream_t after, const float* const* outputs, int count, F each) {
    static cudaEvent_t done = [] {
      cudaEvent_t made;
      cudaEventCreateWithFlags(&made, cudaEventDisableTiming);
      return made;
    }();
    cudaEventRecord(done, after);
    launch([&](CUstream own) {
      driver<CUresult (*)(CUstream, CUevent, unsigned)>("cuStreamWaitEvent")(own, done, 0);
      const auto wait = driver<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWaitValue32_v2");
      for (int i = 0; i < count; ++i)
        wait(own, reinterpret_cast<CUdeviceptr>(outputs[i]), 1u << 30, CU_STREAM_WAIT_VALUE_AND);
      each(own);
    });
  }
};
