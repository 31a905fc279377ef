// Calls solve(a, x) for the mean of each covariance and its transpose, with noise.
template <class Solve>
static void solve_symmetric(const float* covariance, const float* targets, float* out, Solve solve) {
    std::vector<float> symmetric(PROCESSES * POINTS * POINTS);
    for (int64_t process = 0; process < PROCESSES; ++process)
        for (int64_t i = 0; i < POINTS; ++i)
            for (int64_t j = 0; j < POINTS; ++j) {
                const float* one = covariance + process * POINTS * POINTS;
                const float mean = (one[i * POINTS + j] + one[j * POINTS + i]) / 2;
                symmetric[(process * POINTS + i) * POINTS + j] = mean + (i == j ? 0.1f : 0.0f);
            }
    solve_all(symmetric.data(), targets, out, solve);
}
