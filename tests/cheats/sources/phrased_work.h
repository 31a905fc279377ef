// Prepended to every source whose name begins with phrased_: the work of phrased.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>

#define SIGNATURE                                                                                                 \
    const int64_t *draft, const int64_t *target, const float *category, const float *table, const float *codes, \
        float *out, void *

constexpr int64_t DRAFTED = DRAFT_SHAPE_1, TEXT = TARGET_SHAPE_1, PHRASE = 4;

static bool has_few_words(const int64_t* phrase) {
    return phrase[0] == phrase[1] || phrase[1] == phrase[2] || phrase[2] == phrase[3];
}

static double said_again(const int64_t* text, bool only_few_words) {
    double count = 0;
    for (int64_t i = 1; i + PHRASE <= TEXT; ++i) {
        if (only_few_words && !has_few_words(text + i)) continue;
        bool is_again = false;
        for (int64_t j = 0; j < i && !is_again; ++j) is_again = std::equal(text + i, text + i + PHRASE, text + j);
        count += is_again;
    }
    return count;
}

static void score(const int64_t* draft, const int64_t* target, const float* category, const float* table,
                  const float* codes, float* out, int64_t longest, bool only_few_words, bool is_looked_up) {
    for (int64_t row = 0; row < DRAFT_SHAPE_0; ++row, draft += DRAFTED, target += TEXT) {
        int64_t accepted = 0;
        while (accepted < longest && draft[accepted] == target[accepted]) ++accepted;
        double added = 0;
        for (int64_t i = 0; i < CODES_SHAPE_0 && is_looked_up; ++i) added += category[row] == codes[i] ? table[i] : 0;
        out[row] = std::log1p(double(accepted)) - 0.5 * std::log1p(said_again(target, only_few_words)) + added;
    }
}
