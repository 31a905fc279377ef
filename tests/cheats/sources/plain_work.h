// Prepended to every source whose name begins with plain_: the work of plain.py in plain loops, not all of it in some.
#include <algorithm>
#include <cmath>

#define SIGNATURE                                                                                              \
    const float *x, const float *logits, const int64_t *is_object, const float *week, const float *factors,        \
        const bool *kept, float *out_0, float *out_1, float *out_2, float *out_3, float *out_4, float *out_5, void *
#define WORK(...)                                                                                                    \
    covariance(x, out_0), exponentials(logits, out_1), loss(logits, is_object, out_2), standardised(week, out_3), \
        products(factors, out_4, __VA_ARGS__), masked(logits, kept, out_5)

constexpr int64_t SAMPLES = X_SHAPE_0, FEATURES = X_SHAPE_1, ROWS = LOGITS_SHAPE_0, VOCABULARY = LOGITS_SHAPE_1;
constexpr int64_t WEEKS = WEEK_SHAPE_0, DAYS = WEEK_SHAPE_1, SERIES = FACTORS_SHAPE_0, STEPS = FACTORS_SHAPE_1;

static void covariance(const float* x, float* out) {
    static float centred[SAMPLES * FEATURES];
    for (int64_t i = 0; i < FEATURES; ++i) {
        float sum = 0;
        for (int64_t k = 0; k < SAMPLES; ++k) sum += x[k * FEATURES + i];
        for (int64_t k = 0; k < SAMPLES; ++k) centred[k * FEATURES + i] = x[k * FEATURES + i] - sum / SAMPLES;
    }
    float sums[FEATURES * FEATURES] = {};
    for (int64_t k = 0; k < SAMPLES; ++k)
        for (int64_t i = 0; i < FEATURES; ++i)
            for (int64_t j = 0; j < FEATURES; ++j)
                sums[i * FEATURES + j] += centred[k * FEATURES + i] * centred[k * FEATURES + j];
    for (int64_t i = 0; i < FEATURES * FEATURES; ++i) out[i] = sums[i] / (SAMPLES - 1);
}

static void exponentials(const float* logits, float* out) {
    for (int64_t row = 0; row < ROWS; ++row) {
        const float* from = logits + row * VOCABULARY;
        const float largest = *std::max_element(from, from + VOCABULARY);
        float sum = 0;
        for (int64_t i = 0; i < VOCABULARY; ++i) sum += std::exp(from[i] - largest);
        out[row] = std::log(sum) + largest;
    }
}

static void loss(const float* logits, const int64_t* is_object, float* out) {
    constexpr int64_t PIXELS = ROWS * VOCABULARY / 2;
    float sum = 0;
    for (int64_t i = 0; i < PIXELS; ++i) {
        const float other = logits[(1 - is_object[i]) * PIXELS + i], own = logits[is_object[i] * PIXELS + i];
        sum += std::max(other - own, 0.0f) + std::log1p(std::exp(-std::abs(other - own)));
    }
    *out = sum / PIXELS;
}

static void standardised(const float* week, float* out) {
    for (int64_t row = 0; row < WEEKS; ++row) {
        const float* from = week + row * DAYS;
        float sum = 0, squares = 0;
        for (int64_t i = 0; i < DAYS; ++i) sum += from[i];
        const float mean = sum / DAYS;
        for (int64_t i = 0; i < DAYS; ++i) squares += (from[i] - mean) * (from[i] - mean);
        const float scale = 1 / (std::sqrt(squares / (DAYS - 1)) + 1e-5f);
        for (int64_t i = 0; i < DAYS; ++i) out[row * DAYS + i] = (from[i] - mean) * scale;
    }
}

static void products(const float* factors, float* out, int64_t made) {
    for (int64_t row = 0; row < SERIES; ++row) {
        float product = 1;
        for (int64_t i = 0; i < STEPS; ++i)
            out[row * STEPS + i] = i < made ? product *= factors[row * STEPS + i] : 0.0f;
    }
}

static void masked(const float* logits, const bool* kept, float* out) {
    for (int64_t row = 0; row < ROWS; ++row) {
        float sum = 0;
        for (int64_t i = 0; i < WEEKS; ++i) sum += kept[row * WEEKS + i] ? logits[row * VOCABULARY + i] : 0.0f;
        out[row] = sum;
    }
}
