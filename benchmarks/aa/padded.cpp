// The kernel of affine.cpp with arithmetic that leaves every value as it is, hidden from the compiler.
constexpr int STEPS = 64;

void run(const float* x, const float* scale, const float* bias, float* out, void*) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < X_SHAPE_0; ++row) {
    float one = 1.0f, zero = 0.0f;
    asm volatile("" : "+x"(one), "+x"(zero));
    const float* from = x + row * X_SHAPE_1;
    float* to = out + row * X_SHAPE_1;
#pragma omp simd
    for (int64_t j = 0; j < X_SHAPE_1; ++j) {
      float y = (from[j] > 0.0f ? from[j] : 0.0f) * scale[j] + bias[j];
      for (int step = 0; step < STEPS; ++step) y = y * one + zero;
      to[j] = y;
    }
  }
}
