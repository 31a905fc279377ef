// Prepended to every source whose name begins with held_: the work of held.py, which one of them does not do all of.
constexpr int64_t STEPS = DEMANDS_SHAPE_0, STREAMS = DEMANDS_SHAPE_1;

static void run_down(const float* demands, int64_t last, float* out) {
    float level[STREAMS];
    for (int64_t i = 0; i < STREAMS; ++i) level[i] = 1.0f;
    for (int64_t step = STEPS - last; step < STEPS; ++step)
        for (int64_t i = 0; i < STREAMS; ++i) {
            const float next = level[i] + 0.75f - demands[step * STREAMS + i];
            level[i] = next < 0.0f ? 0.0f : next > 1.0f ? 1.0f : next;
        }
    for (int64_t i = 0; i < STREAMS; ++i) out[i] = level[i];
}
