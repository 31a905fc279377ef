//: exp
// exp(x) = 2^n exp(r), |r| <= ln(2)/2, polynomial of degree 6 (relative error 3e-9 before rounding, 1.5e-7 after).
// Below -87.34 it is 0, above 88.73 infinity; NaN stays NaN. Branch-free, so that it vectorises.
static inline __attribute__((always_inline)) float rl_exp(float x) {
  x = x < -87.33654f ? -87.33654f : x;
  x = x > 89.0f ? 89.0f : x;
  const float n = __builtin_floorf(__builtin_fmaf(x, 1.44269504f, 0.5f));
  // ln(2) in two parts; fused, because fast-math may not reorder a fused operation.
  const float r = __builtin_fmaf(n, 2.12194440e-4f, __builtin_fmaf(n, -0.693359375f, x));
  float p = 1.3814611e-3f;
  p = __builtin_fmaf(p, r, 8.3687100e-3f);
  p = __builtin_fmaf(p, r, 4.1668387e-2f);
  p = __builtin_fmaf(p, r, 1.6666521e-1f);
  p = __builtin_fmaf(p, r, 4.9999993e-1f);
  p = __builtin_fmaf(p, r * r, r) + 1.0f;
  // 2^(n-1), so that n = 128 still has an exponent; n = -126 gives 0.
  const float half_scale = __builtin_bit_cast(float, (static_cast<int32_t>(n) + 126) << 23);
  return (p + p) * half_scale;
}
//: log
// log(x) = e ln(2) + log(m), m in [sqrt(1/2), sqrt(2)), polynomial of degree 10 (6e-9 before rounding).
static inline __attribute__((always_inline)) float rl_log(float x) {
  // Unsigned: the bits of a negative x would overflow.
  const uint32_t moved = __builtin_bit_cast(uint32_t, x) - 0x3f3504f3u;
  const int32_t shifted = static_cast<int32_t>(moved);
  const float e = static_cast<float>(shifted >> 23);
  const float f = __builtin_bit_cast(float, (shifted & 0x007fffff) + 0x3f3504f3) - 1.0f;
  float p = -7.6344299e-2f;
  p = __builtin_fmaf(p, f, 1.2761550e-1f);
  p = __builtin_fmaf(p, f, -1.3160195e-1f);
  p = __builtin_fmaf(p, f, 1.4201762e-1f);
  p = __builtin_fmaf(p, f, -1.6623356e-1f);
  p = __builtin_fmaf(p, f, 2.0001227e-1f);
  p = __builtin_fmaf(p, f, -2.5000821e-1f);
  p = __builtin_fmaf(p, f, 3.3333332e-1f);
  const float square = f * f;
  float y = __builtin_fmaf(p * f, square, e * -2.12194440e-4f);
  y = __builtin_fmaf(square, -0.5f, y);
  y = __builtin_fmaf(e, 0.693359375f, f + y);
  y = x == __builtin_inff() ? x : y;
  y = x < 1.17549435e-38f ? -__builtin_inff() : y;  // zero, and subnormals, which fast-math flushes to it
  return (x < 0.0f || x != x) ? __builtin_nanf("") : y;
}
//: erf
// erf(x) = x q(x^2), q in Chebyshev-scaled t on |x| <= 3.92, where erf rounds to 1 (relative error 2.8e-7).
static inline __attribute__((always_inline)) float rl_erf(float x) {
  const float t = __builtin_fmaf(x * x, 0.13015410f, -1.0f);
  float p = 1.9046012e-3f;
  p = __builtin_fmaf(p, t, -4.4995120e-3f);
  p = __builtin_fmaf(p, t, 2.5824131e-3f);
  p = __builtin_fmaf(p, t, -3.1030581e-3f);
  p = __builtin_fmaf(p, t, 1.3325742e-2f);
  p = __builtin_fmaf(p, t, -2.3390850e-2f);
  p = __builtin_fmaf(p, t, 3.0279726e-2f);
  p = __builtin_fmaf(p, t, -4.2087052e-2f);
  p = __builtin_fmaf(p, t, 5.8200557e-2f);
  p = __builtin_fmaf(p, t, -7.4293936e-2f);
  p = __builtin_fmaf(p, t, 9.0627945e-2f);
  p = __builtin_fmaf(p, t, -1.0915482e-1f);
  p = __builtin_fmaf(p, t, 1.3408274e-1f);
  p = __builtin_fmaf(p, t, -1.8010925e-1f);
  p = __builtin_fmaf(p, t, 3.6073683e-1f);
  float y = p * x;
  y = x > 3.92f ? 1.0f : y;
  return x < -3.92f ? -1.0f : y;
}
//: gelu
// x Phi(x), the exact form: Phi(x) = 1/2 + x q(x^2) with erf's polynomial, scaled; 0 and 1 beyond +-5.5437.
static inline __attribute__((always_inline)) float rl_gelu(float x) {
  const float near = x > 5.5437f ? 5.5437f : x;
  const float t = __builtin_fmaf(near * near, 0.06507705f, -1.0f);
  float p = 6.73378221e-04f;
  p = __builtin_fmaf(p, t, -1.59081773e-03f);
  p = __builtin_fmaf(p, t, 9.13020900e-04f);
  p = __builtin_fmaf(p, t, -1.09709671e-03f);
  p = __builtin_fmaf(p, t, 4.71136139e-03f);
  p = __builtin_fmaf(p, t, -8.26991441e-03f);
  p = __builtin_fmaf(p, t, 1.07054996e-02f);
  p = __builtin_fmaf(p, t, -1.48800200e-02f);
  p = __builtin_fmaf(p, t, 2.05770041e-02f);
  p = __builtin_fmaf(p, t, -2.62668730e-02f);
  p = __builtin_fmaf(p, t, 3.20418174e-02f);
  p = __builtin_fmaf(p, t, -3.85920579e-02f);
  p = __builtin_fmaf(p, t, 4.74054057e-02f);
  p = __builtin_fmaf(p, t, -6.36782368e-02f);
  p = __builtin_fmaf(p, t, 1.27539729e-01f);
  const float phi = __builtin_fmaf(p, near, 0.5f);
  return x * (x < -5.5437f ? 0.0f : phi);
}
//: sigmoid exp
static inline __attribute__((always_inline)) float rl_sigmoid(float x) { return 1.0f / (1.0f + rl_exp(-x)); }
//: silu exp
static inline __attribute__((always_inline)) float rl_silu(float x) { return x / (1.0f + rl_exp(-x)); }
//: tanh exp
// Near 0 an odd polynomial (4e-9), else (1 - e) / (1 + e) with e = exp(-2 |x|).
static inline __attribute__((always_inline)) float rl_tanh(float x) {
  const float a = __builtin_fabsf(x);
  const float e = rl_exp(-2.0f * a);
  const float far = (1.0f - e) / (1.0f + e);
  const float s = x * x;
  float p = -5.7049784e-3f;
  p = __builtin_fmaf(p, s, 2.0639079e-2f);
  p = __builtin_fmaf(p, s, -5.3739712e-2f);
  p = __builtin_fmaf(p, s, 1.3331442e-1f);
  p = __builtin_fmaf(p, s, -3.3333282e-1f);
  const float near = __builtin_fmaf(p * s, a, a);
  return __builtin_copysignf(a < 0.625f ? near : far, x);
}
