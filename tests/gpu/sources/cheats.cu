// out = relu(x) * scale + bias, row by row, and ways to seem faster than it. CHEAT, defined in front of this file, chooses.
#ifndef CHEAT
#define CHEAT 0
#endif
enum {
  HONEST, BACKGROUND_LAUNCH, HOOKED_EVENTS, HOOKED_WAIT, WORKS_AHEAD, SKIPS_WHEN_TIMED, PERSISTS_LINES, STALE_GRAPH,
  FREED_MEMORY, HALF_PRECISION, FAILED_LAUNCH, OPENS_INPUTS, CLEARS_ERRORS, LOADS_CUBLAS, WAITS_ON_DEVICE
};

#include <cuda.h>
#include <cuda_fp16.h>
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <map>
#include <thread>

struct Job {
  const float *x, *scale, *bias;
  float* out;
};

constexpr int kThreads = 256, kBlocks = 132 * 16;
constexpr long kUnchecked = 150;  // more calls than a verification makes

__global__ void affine(Job j, bool is_rounded) {
  constexpr int64_t kQuads = X_NUMEL / 4, kWidth = X_SHAPE_1 / 4;
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < kQuads; i += int64_t(gridDim.x) * blockDim.x) {
    float4 v = reinterpret_cast<const float4*>(j.x)[i];
    const float4 s = reinterpret_cast<const float4*>(j.scale)[i % kWidth];
    const float4 b = reinterpret_cast<const float4*>(j.bias)[i % kWidth];
    if (is_rounded) {
      v.x = __half2float(__float2half(v.x)), v.y = __half2float(__float2half(v.y));
      v.z = __half2float(__float2half(v.z)), v.w = __half2float(__float2half(v.w));
    }
    v.x = fmaxf(v.x, 0.0f) * s.x + b.x, v.y = fmaxf(v.y, 0.0f) * s.y + b.y;
    v.z = fmaxf(v.z, 0.0f) * s.z + b.z, v.w = fmaxf(v.w, 0.0f) * s.w + b.w;
    reinterpret_cast<float4*>(j.out)[i] = v;
  }
}

__global__ void overwrite(float* input) { input[threadIdx.x] = 0.0f; }

// Traps when memory that nobody has written to holds anything.
__global__ void look(const uint4* memory, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
    if ((memory[i].x | memory[i].y | memory[i].z | memory[i].w) != 0) asm volatile("trap;");
}

static void work(const Job& job, cudaStream_t stream) {
  affine<<<kBlocks, kThreads, 0, stream>>>(job, CHEAT == HALF_PRECISION);
}

template <class F>
static F driver(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<F>(dlsym(library, name));
}

// ------------------------------------------------------------------------------------------------ the host's own calls

static CUresult quarter_of_the_time(float* ms, CUevent first, CUevent last) {
  const auto real = driver<CUresult (*)(float*, CUevent, CUevent)>("cuEventElapsedTime");
  const CUresult result = real(ms, first, last);
  *ms = CHEAT == HOOKED_WAIT ? 0.01f : *ms / 4;
  return CHEAT == HOOKED_WAIT ? CUDA_SUCCESS : result;
}
static CUresult no_wait() { return CUDA_SUCCESS; }

static void replace(const dl_phdr_info* info, long table, long size, long symbol_table, long string_table) {
  const auto* entries = reinterpret_cast<const ElfW(Rela)*>(table);
  const auto* symbols = reinterpret_cast<const ElfW(Sym)*>(symbol_table);
  for (size_t i = 0; table && i < size / sizeof *entries; ++i) {
    const char* name = reinterpret_cast<char*>(string_table) + symbols[ELF64_R_SYM(entries[i].r_info)].st_name;
    void* mine = nullptr;
    if (strncmp(name, "cuEventElapsedTime", 18) == 0) mine = reinterpret_cast<void*>(quarter_of_the_time);
    if (CHEAT == HOOKED_WAIT && strncmp(name, "cuCtxSynchronize", 16) == 0) mine = reinterpret_cast<void*>(no_wait);
    if (mine == nullptr) continue;
    const unsigned long slot = info->dlpi_addr + entries[i].r_offset;
    mprotect(reinterpret_cast<void*>(slot & ~4095ul), 8192, PROT_READ | PROT_WRITE);
    *reinterpret_cast<void**>(slot) = mine;
  }
}

static int hook(dl_phdr_info* info, size_t, void*) {
  long known[DT_NUM] = {};
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    for (auto* d = reinterpret_cast<ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr); d->d_tag; ++d)
      if (d->d_tag > 0 && d->d_tag < DT_NUM) known[d->d_tag] = long(d->d_un.d_val);
  }
  replace(info, known[DT_JMPREL], known[DT_PLTRELSZ], known[DT_SYMTAB], known[DT_STRTAB]);
  replace(info, known[DT_RELA], known[DT_RELASZ], known[DT_SYMTAB], known[DT_STRTAB]);
  return 1;  // the first object is the host itself
}

__attribute__((constructor)) static void begin() {
  if (CHEAT == HOOKED_EVENTS || CHEAT == HOOKED_WAIT) dl_iterate_phdr(hook, nullptr);
}

// --------------------------------------------------------------------------------------------------- behind the clock

// A thread launches the work after the call has returned.
static void launch_later(const Job& job) {
  static Job todo;
  static std::atomic<bool> is_waiting{false};
  static std::thread* worker = nullptr;
  if (worker == nullptr)
    worker = new std::thread([] {
      cudaStream_t side;
      cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking);
      for (;;) {
        usleep(5000);
        if (!is_waiting.exchange(false)) continue;
        work(todo, side);
        cudaStreamSynchronize(side);
      }
    });
  todo = job;
  is_waiting = true;
}

static std::map<const float*, Job> g_jobs;  // of all sets, by their inputs' addresses

// All known sets at once when a block begins, which is when the first set comes; nothing in the calls that follow.
static void work_ahead(const Job& job, cudaStream_t stream) {
  if (job.x != g_jobs.begin()->first) return;
  for (const auto& known : g_jobs) work(known.second, stream);
}

// A context and a stream of the candidate's own, used once. Made in warm-up: the driver starts a thread for them, and one
// that appears later is told as such; and a kernel is loaded when it is first launched, which waits for the context's work.
struct OwnStream {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
};

static OwnStream& own_stream(const Job& job) {
  static OwnStream own = [&job] {
    OwnStream made;
    driver<CUresult (*)(CUcontext*, unsigned, CUdevice)>("cuCtxCreate_v2")(&made.context, 0, 0);
    driver<CUresult (*)(CUstream*, unsigned)>("cuStreamCreate")(&made.stream, CU_STREAM_NON_BLOCKING);
    work(job, made.stream);
    driver<CUresult (*)(CUstream)>("cuStreamSynchronize")(made.stream);
    driver<CUresult (*)(CUcontext*)>("cuCtxPopCurrent_v2")(nullptr);
    return made;
  }();
  return own;
}

// Whether blocks are timed: a block begins with the first set and ends before the last; a warm-up goes round all of them.
static bool is_timed(const Job& job, bool is_unchecked) {
  static const float* previous = nullptr;
  static bool was_seen = false;
  was_seen |= is_unchecked && job.x == g_jobs.begin()->first && previous != g_jobs.rbegin()->first;
  previous = job.x;
  return was_seen;
}

// In a context of its own: wait until the last set's output is poisoned again, which ends a renewal, then do the work of
// every set, so that it is done before or while the next block runs. Returns whether this block's work was asked for so.
// Slow in warm-up: a block must not reach the last set.
static bool wait_on_device(const Job& job) {
  constexpr size_t kRounds = 6;  // more than the renewals between two blocks of a candidate
  static std::deque<CUevent> rounds;
  static bool is_served = false;
  const auto push = driver<CUresult (*)(CUcontext)>("cuCtxPushCurrent_v2");
  const auto pop = driver<CUresult (*)(CUcontext*)>("cuCtxPopCurrent_v2");
  const auto clear = driver<CUresult (*)(CUdeviceptr, unsigned, size_t, CUstream)>("cuMemsetD32Async");
  const auto wait = driver<CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned)>("cuStreamWaitValue32_v2");
  if (job.x != g_jobs.begin()->first) return is_served;
  is_served = !rounds.empty();
  const CUstream stream = own_stream(job).stream;
  push(own_stream(job).context);
  while (!rounds.empty() && driver<CUresult (*)(CUevent)>("cuEventQuery")(rounds.front()) == CUDA_SUCCESS) {
    driver<CUresult (*)(CUevent)>("cuEventDestroy_v2")(rounds.front());
    rounds.pop_front();
  }
  const CUdeviceptr last = reinterpret_cast<CUdeviceptr>(g_jobs.rbegin()->second.out);
  while (rounds.size() < kRounds) {
    clear(last, 0, 1, stream);
    wait(stream, last, 0x7F800000, CU_STREAM_WAIT_VALUE_AND);  // any bit of it: poison is NaN
    for (const auto& known : g_jobs) work(known.second, stream);
    CUevent done = nullptr;
    driver<CUresult (*)(CUevent*, unsigned)>("cuEventCreate")(&done, CU_EVENT_DISABLE_TIMING);
    driver<CUresult (*)(CUevent, CUstream)>("cuEventRecord")(done, stream);
    rounds.push_back(done);
  }
  pop(nullptr);
  return is_served;
}

// --------------------------------------------------------------------------------------------------------------- memory

static void keep_in_l2(const Job& job, cudaStream_t stream) {
  static bool is_set = false;
  if (is_set) return;
  is_set = true;
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, properties.persistingL2CacheMaxSize);
  cudaStreamAttrValue value = {};
  value.accessPolicyWindow.base_ptr = const_cast<float*>(job.x);
  value.accessPolicyWindow.num_bytes = properties.accessPolicyMaxWindowSize;
  value.accessPolicyWindow.hitRatio = 1.0f;
  value.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;
  value.accessPolicyWindow.missProp = cudaAccessPropertyStreaming;
  cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value);
  cudaGetLastError();
}

static void look_at_new_memory(cudaStream_t stream) {
  static bool has_looked = false;
  if (has_looked) return;
  has_looked = true;
  constexpr size_t kBytes = size_t(4) << 30;
  void* memory = nullptr;
  if (cudaMalloc(&memory, kBytes) != cudaSuccess) return;
  look<<<kBlocks, kThreads, 0, stream>>>(static_cast<const uint4*>(memory), kBytes / sizeof(uint4));
}

static void open_input(const Job& job, cudaStream_t stream) {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  const auto x = reinterpret_cast<CUdeviceptr>(job.x);
  driver<CUresult (*)(CUdeviceptr*, size_t*, CUdeviceptr)>("cuMemGetAddressRange_v2")(&base, &bytes, x);
  CUmemAccessDesc access = {};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  driver<CUresult (*)(CUdeviceptr, size_t, const CUmemAccessDesc*, size_t)>("cuMemSetAccess")(base, bytes, &access, 1);
  overwrite<<<1, kThreads, 0, stream>>>(const_cast<float*>(job.x));
}

// ------------------------------------------------------------------------------------------------------------- launches

static void replay_first_graph(const Job& job, cudaStream_t stream) {
  static cudaGraphExec_t recorded = nullptr;
  if (recorded == nullptr) {
    cudaGraph_t graph;
    cudaStream_t recorder;
    cudaStreamCreateWithFlags(&recorder, cudaStreamNonBlocking);
    cudaStreamBeginCapture(recorder, cudaStreamCaptureModeThreadLocal);
    work(job, recorder);
    cudaStreamEndCapture(recorder, &graph);
    cudaGraphInstantiate(&recorded, graph, 0);
  }
  cudaGraphLaunch(recorded, stream);
}

// More threads than a block can have: nothing runs, and the error is taken away before the host can see it.
static void fail_to_launch(const Job& job, cudaStream_t stream) {
  affine<<<kBlocks, 4096, 0, stream>>>(job, false);
  cudaGetLastError();
}

static bool has_cublas() {
  for (const char* name : {"libcublas.so.13", "libcublas.so.12", "/usr/local/cuda/lib64/libcublas.so"})
    if (dlopen(name, RTLD_NOW) != nullptr) return true;
  return false;
}

void run(const float* x, const float* scale, const float* bias, float* out, void*, cudaStream_t stream) {
  static long calls = 0;
  const Job job{x, scale, bias, out};
  ++calls;
  g_jobs[x] = job;
  const bool is_unchecked = calls > kUnchecked;
  if (CHEAT == BACKGROUND_LAUNCH) return launch_later(job);
  if (CHEAT == STALE_GRAPH) return replay_first_graph(job, stream);
  if (CHEAT == CLEARS_ERRORS || (CHEAT == FAILED_LAUNCH && calls > 1)) return fail_to_launch(job, stream);
  if (CHEAT == SKIPS_WHEN_TIMED && is_unchecked) return;
  if (CHEAT == WORKS_AHEAD && is_unchecked) return work_ahead(job, stream);
  if (CHEAT == WAITS_ON_DEVICE && is_unchecked) own_stream(job);
  if (CHEAT == WAITS_ON_DEVICE && is_timed(job, is_unchecked) && wait_on_device(job)) return;
  for (int i = 0; CHEAT == WAITS_ON_DEVICE && is_unchecked && i < 3; ++i) work(job, stream);
  if (CHEAT == PERSISTS_LINES) keep_in_l2(job, stream);
  if (CHEAT == FREED_MEMORY) look_at_new_memory(stream);
  if (CHEAT == LOADS_CUBLAS) has_cublas();
  work(job, stream);
  if (CHEAT == OPENS_INPUTS) open_input(job, stream);
}
