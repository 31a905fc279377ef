// Prepended to every source whose name begins with routed_: the work of routed.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#define SIGNATURE const float *x, const float *decay, const float *router, const float *experts, float *out, void *

constexpr int64_t STEPS = X_SHAPE_0, SEQUENCES = X_SHAPE_1, WIDTH = X_SHAPE_2, EXPERTS = EXPERTS_SHAPE_0;

// Chooses experts by the last `steps` of each sequence.
static void route(const float* x, const float* decay, const float* router, const float* experts, int64_t steps, float* out) {
    std::vector<float> state(WIDTH), logits(EXPERTS);
    for (int64_t sequence = 0; sequence < SEQUENCES; ++sequence, out += WIDTH) {
        std::fill(state.begin(), state.end(), 0.0f);
        for (int64_t step = STEPS - steps; step < STEPS; ++step)
            for (int64_t i = 0; i < WIDTH; ++i) {
                const float kept = 1 / (1 + std::exp(-decay[i]));
                state[i] = kept * state[i] + (1 - kept) * x[(step * SEQUENCES + sequence) * WIDTH + i];
            }
        std::fill(logits.begin(), logits.end(), 0.0f);
        for (int64_t i = 0; i < WIDTH; ++i)
            for (int64_t expert = 0; expert < EXPERTS; ++expert) logits[expert] += state[i] * router[i * EXPERTS + expert];
        const float* weights = experts + (std::max_element(logits.begin(), logits.end()) - logits.begin()) * WIDTH * WIDTH;
        const float* last = x + ((STEPS - 1) * SEQUENCES + sequence) * WIDTH;
        std::fill(out, out + WIDTH, 0.0f);
        for (int64_t i = 0; i < WIDTH; ++i)
            for (int64_t j = 0; j < WIDTH; ++j) out[j] += last[i] * weights[i * WIDTH + j];
    }
}
