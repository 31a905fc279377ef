// Puts what so many steps of conjugate gradients with scaled rows find in place of the right sides of equations.
template <int64_t STEPS>
static void make_steps(const Vector& a, std::vector<Vector>& solutions) {
    for (Vector& target : solutions) {
        Vector left = target, x(POINTS), scaled(POINTS), direction(POINTS), moved(POINTS);
        double before = 0;
        for (int64_t step = 0; step < STEPS; ++step) {
            for (int64_t i = 0; i < POINTS; ++i) scaled[i] = left[i] / a[i * POINTS + i];
            const double now = product(left, scaled);
            if (now == 0) break;
            for (int64_t i = 0; i < POINTS; ++i) direction[i] = scaled[i] + (step > 0 ? now / before * direction[i] : 0);
            for (int64_t i = 0; i < POINTS; ++i) {
                moved[i] = 0;
                for (int64_t j = 0; j < POINTS; ++j) moved[i] += a[i * POINTS + j] * direction[j];
            }
            const double length = now / product(direction, moved);
            for (int64_t i = 0; i < POINTS; ++i) x[i] += length * direction[i];
            for (int64_t i = 0; i < POINTS; ++i) left[i] -= length * moved[i];
            before = now;
        }
        target = x;
    }
}
