// Puts solutions of equations with a definite matrix in place of their right sides: by a factor of it.
static void solve(Vector a, std::vector<Vector>& solutions) {
    for (int64_t i = 0; i < POINTS; ++i)
        for (int64_t j = 0; j <= i; ++j) {
            double left = a[i * POINTS + j];
            for (int64_t k = 0; k < j; ++k) left -= a[i * POINTS + k] * a[j * POINTS + k];
            a[i * POINTS + j] = i == j ? std::sqrt(left) : left / a[j * POINTS + j];
        }
    for (Vector& x : solutions) {
        for (int64_t i = 0; i < POINTS; ++i) {
            for (int64_t j = 0; j < i; ++j) x[i] -= a[i * POINTS + j] * x[j];
            x[i] /= a[i * POINTS + i];
        }
        for (int64_t i = POINTS - 1; i >= 0; --i) {
            for (int64_t j = i + 1; j < POINTS; ++j) x[i] -= a[j * POINTS + i] * x[j];
            x[i] /= a[i * POINTS + i];
        }
    }
}
