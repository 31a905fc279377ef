//: words
// Reinterprets trivially copyable values as 4-byte words, which shuffles and boards move one by one.
template <class T>
struct rl_words {
  static constexpr int COUNT = sizeof(T) / 4;
  float word[COUNT];
};
//: vector
template <int BYTES> struct rl_word { using type = uint4; };
template <> struct rl_word<8> { using type = uint2; };
template <> struct rl_word<4> { using type = unsigned int; };
template <> struct rl_word<2> { using type = unsigned short; };
template <> struct rl_word<1> { using type = unsigned char; };
enum rl_kind { RL_PLAIN, RL_READ_ONLY, RL_STREAMING };
// VEC elements in words of at most 16 bytes; ALIGN is what the address is a multiple of beyond the vector's own size.
template <int VEC, int ALIGN, rl_kind KIND, class T>
__device__ __forceinline__ void rl_load(const T* from, T (&to)[VEC]) {
  constexpr int BYTES = VEC * static_cast<int>(sizeof(T));
  constexpr int SIZE = BYTES < ALIGN ? BYTES : ALIGN;
  using word = typename rl_word<SIZE>::type;
#pragma unroll
  for (int i = 0; i < BYTES / SIZE; ++i) {
    const word* at = reinterpret_cast<const word*>(from) + i;
    const word got = KIND == RL_STREAMING ? __ldcs(at) : KIND == RL_READ_ONLY ? __ldg(at) : *at;
    memcpy(reinterpret_cast<char*>(to) + i * SIZE, &got, SIZE);
  }
}
template <int VEC, int ALIGN, rl_kind KIND, class T>
__device__ __forceinline__ void rl_store(T* to, const T (&from)[VEC]) {
  constexpr int BYTES = VEC * static_cast<int>(sizeof(T));
  constexpr int SIZE = BYTES < ALIGN ? BYTES : ALIGN;
  using word = typename rl_word<SIZE>::type;
#pragma unroll
  for (int i = 0; i < BYTES / SIZE; ++i) {
    word put;
    memcpy(&put, reinterpret_cast<const char*>(from) + i * SIZE, SIZE);
    word* at = reinterpret_cast<word*>(to) + i;
    if (KIND == RL_STREAMING) {
      __stcs(at, put);
    } else {
      *at = put;
    }
  }
}
//: sum
struct rl_sum {
  float value = 0.0f;
  __device__ __forceinline__ void merge(const rl_sum& other) { value += other.value; }
};
//: prod
struct rl_prod {
  float value = 1.0f;
  __device__ __forceinline__ void merge(const rl_prod& other) { value *= other.value; }
};
//: max
struct rl_max {
  float value = -RL_INFINITY;
  __device__ __forceinline__ void merge(const rl_max& other) { value = fmaxf(value, other.value); }
};
//: min
struct rl_min {
  float value = RL_INFINITY;
  __device__ __forceinline__ void merge(const rl_min& other) { value = fminf(value, other.value); }
};
//: moments
// Count, mean and squared distances from it, merged pairwise: nothing cancels, whatever the mean.
struct rl_moments {
  float count = 0.0f, mean = 0.0f, m2 = 0.0f;
  __device__ __forceinline__ void merge(const rl_moments& other) {
    const float both = count + other.count;
    const float share = both > 0.0f ? other.count / both : 0.0f;
    const float away = other.mean - mean;
    mean = fmaf(away, share, mean);
    m2 = m2 + other.m2 + away * away * count * share;
    count = both;
  }
};
// A thread's own elements relative to the first of them.
struct rl_shifted {
  float count = 0.0f, shift = 0.0f, first = 0.0f, second = 0.0f;
  __device__ __forceinline__ void add(float x) {
    const float away = x - shift;
    first += away;
    second = fmaf(away, away, second);
  }
  __device__ __forceinline__ rl_moments done() const {
    rl_moments result;
    const float inverse = count > 0.0f ? 1.0f / count : 0.0f;
    result.count = count;
    result.mean = fmaf(first, inverse, shift);
    result.m2 = fmaxf(second - first * first * inverse, 0.0f);
    return result;
  }
};
//: online
// A maximum and the sum of exp(x - origin), where the origin is the maximum unless that is infinite.
__device__ __forceinline__ float rl_origin(float top) { return isinf(top) ? 0.0f : top; }
struct rl_online {
  float top = -RL_INFINITY, total = 0.0f;
  __device__ __forceinline__ void raise(float peak) {
    total = total == 0.0f ? 0.0f : total * RL_EXP(rl_origin(top) - rl_origin(peak));
    top = peak;
  }
  template <int VEC>
  __device__ __forceinline__ void add(const float (&x)[VEC]) {
    float peak = top;
#pragma unroll
    for (int k = 0; k < VEC; ++k) peak = fmaxf(peak, x[k]);
    if (peak > top) raise(peak);
    const float origin = rl_origin(top);
#pragma unroll
    for (int k = 0; k < VEC; ++k) total += RL_EXP(x[k] - origin);
  }
  __device__ __forceinline__ void merge(const rl_online& other) {
    rl_online right = other;
    const float peak = fmaxf(top, right.top);
    raise(peak);
    right.raise(peak);
    total += right.total;
  }
};
//: all words
// Every thread of a group of GROUP threads gets the merged value; groups of more than a warp are whole blocks.
template <int LANES, class T>
__device__ __forceinline__ T rl_lanes(T value) {
#pragma unroll
  for (int distance = LANES / 2; distance > 0; distance /= 2) {
    rl_words<T> mine;
    memcpy(&mine, &value, sizeof(T));
#pragma unroll
    for (int i = 0; i < rl_words<T>::COUNT; ++i) mine.word[i] = __shfl_xor_sync(0xffffffffu, mine.word[i], distance);
    T other;
    memcpy(&other, &mine, sizeof(T));
    value.merge(other);
  }
  return value;
}
template <int GROUP, class T>
__device__ __forceinline__ T rl_all(T value, [[maybe_unused]] T* scratch) {
  value = rl_lanes<32>(value);
  if constexpr (GROUP > 32) {
    constexpr int WARPS = GROUP / 32;
    __syncthreads();  // the scratch of the reduction before may still be read
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = rl_lanes<WARPS>(scratch[threadIdx.x % WARPS]);
  }
  return value;
}
//: cluster words
// Blocks of a cluster write their values into each other's shared memory. Two boards in turn: one barrier a reduction.
__device__ __forceinline__ void rl_cluster_sync() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}
template <int CLUSTER, class T>
__device__ __forceinline__ T rl_cluster(T value, T* board, int part) {
  if (threadIdx.x < CLUSTER) {
    rl_words<T> mine;
    memcpy(&mine, &value, sizeof(T));
    const unsigned own = static_cast<unsigned>(__cvta_generic_to_shared(board + part));
    unsigned theirs;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(theirs) : "r"(own), "r"(threadIdx.x));
#pragma unroll
    for (int i = 0; i < rl_words<T>::COUNT; ++i)
      asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(theirs + 4 * i), "f"(mine.word[i]) : "memory");
  }
  rl_cluster_sync();
  T result = board[0];
#pragma unroll
  for (int i = 1; i < CLUSTER; ++i) result.merge(board[i]);
  return result;
}
//: team words all
// Blocks that are all resident meet at a counter that only grows, and read each other's values from device memory.
__device__ __forceinline__ void rl_team_sync(unsigned* counter, unsigned goal) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(counter, 1u);
    unsigned seen;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(counter) : "memory");
    } while (seen < goal);
  }
  __syncthreads();
}
template <class T>
__device__ __forceinline__ void rl_put(float* board, const T& value) {
  rl_words<T> mine;
  memcpy(&mine, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < rl_words<T>::COUNT; ++i) __stcg(board + i, mine.word[i]);
}
template <class T>
__device__ __forceinline__ T rl_get(const float* board) {
  rl_words<T> mine;
#pragma unroll
  for (int i = 0; i < rl_words<T>::COUNT; ++i) mine.word[i] = __ldcg(board + i);
  T value;
  memcpy(&value, &mine, sizeof(T));
  return value;
}
// What PARTS blocks left on a board.
template <int GROUP, int PARTS, int STRIDE, class T>
__device__ __forceinline__ T rl_gather(const float* board, T* scratch) {
  T value;
  for (int i = static_cast<int>(threadIdx.x); i < PARTS; i += GROUP) value.merge(rl_get<T>(board + i * STRIDE));
  return rl_all<GROUP>(value, scratch);
}
//: bulk
// Copies by the bulk copy engine, which count their bytes down on a barrier in shared memory.
__device__ __forceinline__ unsigned rl_shared(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}
__device__ __forceinline__ void rl_barrier_init(uint64_t* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(rl_shared(barrier)) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void rl_barrier_expect(uint64_t* barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(rl_shared(barrier)), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void rl_barrier_wait(uint64_t* barrier, unsigned parity) {
  unsigned is_done;
  do {
    asm volatile(
        "{\n.reg .pred done;\nmbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\nselp.u32 %0, 1, 0, done;\n}"
        : "=r"(is_done)
        : "r"(rl_shared(barrier)), "r"(parity)
        : "memory");
  } while (is_done == 0);
}
__device__ __forceinline__ void rl_bulk(void* to, const void* from, unsigned bytes, uint64_t* barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   rl_shared(to)),
               "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(rl_shared(barrier))
               : "memory");
}
//: rcp
__device__ __forceinline__ float rl_rcp(float x) {
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
//: exp
// exp(x) = 2^(x log2(e)), the product in two parts: 2^-22 of relative error over the whole range, infinities included.
__device__ __forceinline__ float rl_exp(float x) {
  const float near = x < -104.0f ? -104.0f : x > 89.0f ? 89.0f : x;  // NaN fails both and stays
  const float high = near * 1.44269502f;
  const float low = fmaf(near, 1.92596303e-8f, fmaf(near, 1.44269502f, -high));
  float power;
  asm("ex2.approx.f32 %0, %1;" : "=f"(power) : "f"(high));
  return power == RL_INFINITY ? power : fmaf(power, low * 0.69314718f, power);
}
//: div rcp
__device__ __forceinline__ float rl_div(float a, float b) { return a * rl_rcp(b); }
//: sigmoid exp rcp
__device__ __forceinline__ float rl_sigmoid(float x) { return rl_rcp(1.0f + rl_exp(-x)); }
//: silu exp rcp
__device__ __forceinline__ float rl_silu(float x) { return x * rl_rcp(1.0f + rl_exp(-x)); }
//: sqrt
__device__ __forceinline__ float rl_sqrt(float x) {
  float result;
  asm("sqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
