// out = relu(x) * scale + bias, row by row. DEFECT, defined in front of this file, chooses what is wrong with it.
#ifndef DEFECT
#define DEFECT 0
#endif
enum {
  HONEST, ENDLESS, ILLEGAL, WRITES_INPUT, ALLOCATES, BAD_LAUNCH, SIDE_STREAM, HALF, EXITS, POINTER_CACHE, TRAPS,
  KILLS_ITSELF, SLOW, PAST_THE_END
};

#include <signal.h>
#include <stdlib.h>

__global__ void affine(float* x, const float* scale, const float* bias, float* out, int64_t count, int64_t width) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i * 4 < count; i += int64_t(gridDim.x) * blockDim.x) {
    float4 v = reinterpret_cast<const float4*>(x)[i];
    const float4 s = reinterpret_cast<const float4*>(scale)[i % (width / 4)];
    const float4 b = reinterpret_cast<const float4*>(bias)[i % (width / 4)];
    v.x = fmaxf(v.x, 0.0f) * s.x + b.x;
    v.y = fmaxf(v.y, 0.0f) * s.y + b.y;
    v.z = fmaxf(v.z, 0.0f) * s.z + b.z;
    v.w = fmaxf(v.w, 0.0f) * s.w + b.w;
    if (DEFECT == HALF && i * 8 >= count) return;
    if (DEFECT == WRITES_INPUT) x[i * 4] = 0.0f;
    reinterpret_cast<float4*>(out)[i] = v;
  }
  if (DEFECT == ILLEGAL) out[int64_t(1) << 40] = 1.0f;
  if (DEFECT == PAST_THE_END && blockIdx.x == 0 && threadIdx.x == 0) out[count + 3] = 1.0f;
  if (DEFECT == TRAPS) asm volatile("trap;");
  if (DEFECT == SLOW && blockIdx.x == 0 && threadIdx.x == 0) {
    const long long start = clock64();
    while (clock64() - start < 40000000) {  // 20 ms at 2 GHz
    }
  }
  if (DEFECT == ENDLESS)
    while (*reinterpret_cast<volatile const float*>(bias) < 1e30f) {
    }
}

void run(const float* x, const float* scale, const float* bias, float* out, void*, cudaStream_t stream) {
  static float* last_out = nullptr;
  if (DEFECT == EXITS) _Exit(0);
  if (DEFECT == KILLS_ITSELF) raise(SIGKILL);
  if (DEFECT == POINTER_CACHE && last_out == out) return;
  last_out = out;
  if (DEFECT == ALLOCATES) {
    void* memory = nullptr;
    while (cudaMalloc(&memory, size_t(1) << 30) == cudaSuccess) {
    }
  }
  static cudaStream_t side = nullptr;
  if (DEFECT == SIDE_STREAM && side == nullptr) cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
  const int threads = DEFECT == BAD_LAUNCH ? 4096 : 256;
  affine<<<132 * 16, threads, 0, DEFECT == SIDE_STREAM ? side : stream>>>(
      const_cast<float*>(x), scale, bias, out, X_NUMEL, X_SHAPE_1);
}
