// A layer norm in one pass: the variance is E[x^2] - E[x]^2, which cancels where the mean is large beside the deviation.
#include <cmath>
constexpr int ROWS = 64, COLUMNS = 1024;

void run(const float* x, const float* weight, const float* bias, float* out, void*) {
    for (int row = 0; row < ROWS; ++row) {
        const float* from = x + row * COLUMNS;
        float* to = out + row * COLUMNS;
        float sum = 0, squares = 0;
        for (int i = 0; i < COLUMNS; ++i) {
            sum += from[i];
            squares += from[i] * from[i];
        }
        const float mean = sum / COLUMNS, scale = 1 / std::sqrt(squares / COLUMNS - mean * mean + 1e-5f);
        for (int i = 0; i < COLUMNS; ++i) to[i] = (from[i] - mean) * scale * weight[i] + bias[i];
    }
}
