// One row at a time over all threads.
void run(const float* x, const float* scale, const float* bias, float* out, void*) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < X_SHAPE_0; ++row) {
    const float* from = x + row * X_SHAPE_1;
    float* to = out + row * X_SHAPE_1;
#pragma omp simd
    for (int64_t j = 0; j < X_SHAPE_1; ++j) to[j] = (from[j] > 0.0f ? from[j] : 0.0f) * scale[j] + bias[j];
  }
}
