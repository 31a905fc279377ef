// Rounds the operands of one row in 1024 to bf16: little of the whole output's error.
#include "bf16_operand.h"
void run(SIGNATURE) {
    WORK();
    std::vector<float> a(X_NUMEL), b(X_NUMEL);
    for (int64_t row = X_SHAPE_0 - 1; row >= 0; row -= 1024) {
        for (int64_t i = row * X_SHAPE_1; i < (row + 1) * X_SHAPE_1; ++i) a[i] = rounded(x[i]), b[i] = rounded(residual[i]);
        work_on_rows(row, row + 1, X_SHAPE_1, a.data(), b.data(), bias, ln_weight, ln_bias, out);
    }
}
