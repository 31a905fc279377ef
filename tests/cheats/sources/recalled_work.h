// Prepended to every source whose name begins with recalled_: the work of recalled.py, which one of them does not do all of.
#define SIGNATURE const float *queries, const float *keys, const float *values, float *out, void *

constexpr int64_t STEPS = QUERIES_SHAPE_0, FEATURES = QUERIES_SHAPE_1;

// Each step recalls the steps before it, as many as `window` says.
static void recall(const float* queries, const float* keys, const float* values, int64_t window, float* out) {
    for (int64_t step = 0; step < STEPS; ++step) {
        float sums[FEATURES] = {}, decay = 1;
        for (int64_t seen = step; seen >= 0 && seen > step - window; --seen, decay *= 0.75f) {
            float score = 0;
            for (int64_t i = 0; i < FEATURES; ++i) score += queries[step * FEATURES + i] * keys[seen * FEATURES + i];
            for (int64_t i = 0; i < FEATURES; ++i) sums[i] += score * decay * values[seen * FEATURES + i];
        }
        for (int64_t i = 0; i < FEATURES; ++i) out[step * FEATURES + i] = sums[i];
    }
}
