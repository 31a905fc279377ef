// Prepended to every source whose name begins with spread_: the work of spread.py, which some of them do not do all of.
#include <algorithm>

#define SIGNATURE                                                                                                \
    const float *affinity, const float *labels, const float *x, const float *weight, const float *bias, float *out_0, \
        float *out_1, void *

constexpr int64_t NODES = LABELS_SHAPE_0, CLASSES = LABELS_SHAPE_1, ROUNDS = 64;
constexpr int64_t SEQUENCES = X_SHAPE_0, TOKENS = X_SHAPE_1, FEATURES = X_SHAPE_2;
constexpr float KEPT = 0.9f;

struct Limits {
    int64_t rounds = ROUNDS;
    bool is_prefix = false;
};

// What rounds that are left out would add is taken for one geometric series: that of a spread which is even by then.
static void spread(const float* affinity, const float* labels, int64_t rounds, float* out) {
    static float steps[NODES * NODES], now[NODES * CLASSES], before[NODES * CLASSES];
    for (int64_t row = 0; row < NODES; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < NODES; ++i) sum += affinity[row * NODES + i];
        for (int64_t i = 0; i < NODES; ++i) steps[row * NODES + i] = float(affinity[row * NODES + i] / sum);
    }
    std::copy(labels, labels + NODES * CLASSES, now);
    for (int64_t round = 0; round < rounds; ++round) {
        std::copy(now, now + NODES * CLASSES, before);
        for (int64_t row = 0; row < NODES; ++row) {
            float sums[CLASSES] = {};
            for (int64_t i = 0; i < NODES; ++i)
                for (int64_t c = 0; c < CLASSES; ++c) sums[c] += steps[row * NODES + i] * before[i * CLASSES + c];
            for (int64_t c = 0; c < CLASSES; ++c)
                now[row * CLASSES + c] = KEPT * sums[c] + (1 - KEPT) * labels[row * CLASSES + c];
        }
    }
    float left = 0, power = 1;
    for (int64_t round = rounds; round < ROUNDS; ++round) left += power *= KEPT;
    for (int64_t i = 0; i < NODES * CLASSES; ++i) out[i] = now[i] + left * (now[i] - before[i]);
}

static bool is_padding(const float* token) {
    return std::all_of(token, token + FEATURES, [](float value) { return value == 0; });
}

static int64_t prefix_of(const float* tokens) {
    int64_t low = 0, high = TOKENS;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (is_padding(tokens + middle * FEATURES))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void map(const float* token, const float* weight, const float* bias, float* out) {
    for (int64_t i = 0; i < FEATURES; ++i) {
        double sum = bias[i];
        for (int64_t k = 0; token && k < FEATURES; ++k) sum += double(token[k]) * weight[i * FEATURES + k];
        out[i] = std::max(0.0f, float(sum));
    }
}

static void work(const float* affinity, const float* labels, const float* x, const float* weight, const float* bias,
                 float* out_0, float* out_1, Limits limits) {
    spread(affinity, labels, limits.rounds, out_0);
    for (int64_t sequence = 0; sequence < SEQUENCES; ++sequence) {
        const float* tokens = x + sequence * TOKENS * FEATURES;
        const int64_t end = limits.is_prefix ? prefix_of(tokens) : TOKENS;
        for (int64_t i = 0; i < TOKENS; ++i)
            map(i < end ? tokens + i * FEATURES : nullptr, weight, bias, out_1 + (sequence * TOKENS + i) * FEATURES);
    }
}
