// RMS norm and SiLU gate in one pass over each row, rows shared among torch's threads.
#include <torch/extension.h>

#include <ATen/Parallel.h>

#include <cmath>

torch::Tensor forward(torch::Tensor x, torch::Tensor gate, torch::Tensor weight) {
  const int64_t rows = x.size(0);
  const int64_t cols = x.size(1);
  torch::Tensor out = torch::empty_like(x);
  const float* x_data = x.const_data_ptr<float>();
  const float* gate_data = gate.const_data_ptr<float>();
  const float* weight_data = weight.const_data_ptr<float>();
  float* out_data = out.mutable_data_ptr<float>();

  at::parallel_for(0, rows, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* x_row = x_data + row * cols;
      const float* gate_row = gate_data + row * cols;
      float* out_row = out_data + row * cols;

      float squares = 0.0f;
      for (int64_t i = 0; i < cols; ++i) squares += x_row[i] * x_row[i];
      const float scale = 1.0f / std::sqrt(squares / cols + 1e-6f);

      for (int64_t i = 0; i < cols; ++i) {
        const float silu = gate_row[i] / (1.0f + std::exp(-gate_row[i]));
        out_row[i] = x_row[i] * scale * weight_data[i] * silu;
      }
    }
  });
  return out;
}
