// Prepended to every source whose name begins with solved_: the work of solved.py, which some of them do not do all of.
#include <cmath>
#include <vector>

#define SIGNATURE const float *covariance, const float *targets, float *out, void *

constexpr int64_t PROCESSES = TARGETS_SHAPE_0, POINTS = TARGETS_SHAPE_1, TARGETS = TARGETS_SHAPE_2;

using Vector = std::vector<double>;

static double product(const Vector& a, const Vector& b) {
    double sum = 0;
    for (int64_t i = 0; i < POINTS; ++i) sum += a[i] * b[i];
    return sum;
}

// Calls solve(a, x) for each process: it takes a matrix, and puts solutions in place of targets.
template <class Solve>
static void solve_all(const float* covariance, const float* targets, float* out, Solve solve) {
    std::vector<Vector> x(TARGETS, Vector(POINTS));
    for (int64_t process = 0; process < PROCESSES; ++process) {
        for (int64_t i = 0; i < POINTS; ++i)
            for (int64_t target = 0; target < TARGETS; ++target) x[target][i] = *targets++;
        solve(Vector(covariance, covariance + POINTS * POINTS), x);
        for (int64_t i = 0; i < POINTS; ++i)
            for (int64_t target = 0; target < TARGETS; ++target) *out++ = float(x[target][i]);
        covariance += POINTS * POINTS;
    }
}
