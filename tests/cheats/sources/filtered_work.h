// Prepended to every source whose name begins with filtered_: the work of filtered.py, which one of them does not do all of.
constexpr int64_t STEPS = X_SHAPE_0, CHANNELS = X_SHAPE_1;

// Filters the steps; after `settled` of them the gain stays.
static void filter(const float* x, const float* drive, const float* noise, int64_t settled, float* out) {
    float state[CHANNELS] = {}, spread[CHANNELS], gain[CHANNELS];
    for (int64_t i = 0; i < CHANNELS; ++i) spread[i] = noise[i] * noise[i];
    for (int64_t step = 0; step < STEPS; ++step) {
        for (int64_t i = 0; i < CHANNELS && step < settled; ++i) {
            const float before = spread[i] + drive[i] * drive[i];
            gain[i] = before / (before + noise[i] * noise[i]);
            spread[i] = (1 - gain[i]) * before;
        }
        for (int64_t i = 0; i < CHANNELS; ++i) state[i] += gain[i] * (x[step * CHANNELS + i] - state[i]);
    }
    for (int64_t i = 0; i < CHANNELS; ++i) out[i] = state[i];
}
