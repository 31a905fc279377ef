//: stream
// Writes past the cache what nothing reads again: a whole line needs no read for ownership.
#if defined(__AVX512F__) || defined(__AVX__)
#include <immintrin.h>
#endif
static inline void rl_stream(void* to, const void* from, int64_t bytes) {
  char* target = static_cast<char*>(to);
  const char* source = static_cast<const char*>(from);
  int64_t done = (64 - reinterpret_cast<uintptr_t>(target) % 64) % 64;
  done = done < bytes ? done : bytes;
  __builtin_memcpy(target, source, done);
#if defined(__AVX512F__)
  for (; done + 64 <= bytes; done += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(target + done), _mm512_loadu_si512(source + done));
#elif defined(__AVX__)
  for (; done + 32 <= bytes; done += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(target + done),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + done)));
#endif
  __builtin_memcpy(target + done, source + done, bytes - done);
}
static inline void rl_stream_end() {
#if defined(__AVX512F__) || defined(__AVX__)
  _mm_sfence();
#endif
}
