// Prepended to every source whose name begins with silent_: the work of silent.py, which one of them does not do all of.
constexpr int64_t STEPS = STEPS_SHAPE_0, ROWS = STEPS_SHAPE_1, CHANNELS = STEPS_SHAPE_2;

static void ring(const float* steps, int64_t last, float* out) {
    for (int64_t row = 0; row < ROWS; ++row) {
        float state[CHANNELS] = {};
        for (int64_t step = STEPS - last; step < STEPS; ++step) {
            const float* now = steps + (step * ROWS + row) * CHANNELS;
            const float end = state[CHANNELS - 1];
            for (int64_t i = CHANNELS - 1; i > 0; --i) state[i] = 0.85f * state[i - 1] + now[i];
            state[0] = 0.85f * end + now[0];
        }
        for (int64_t i = 0; i < CHANNELS; ++i) out[row * CHANNELS + i] = state[i];
    }
}
