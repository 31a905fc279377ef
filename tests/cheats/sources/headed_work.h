// Prepended to every source whose name begins with headed_: the work of headed.py, which some of them do not do all of.
#include <algorithm>
#include <cmath>

#define SIGNATURE const int64_t *words, const int64_t *phrase, const float *weights, float *out, void *

constexpr int64_t WORDS = WORDS_SHAPE_1, PHRASE = PHRASE_SHAPE_0, VOCABULARY = 50257;
constexpr int64_t HEADER[] = {28006, 8191, 28007, 271}, LENGTH = 4;

static double turns_of(const int64_t* words) {
    int64_t turns = 0;
    for (int64_t i = 0; i + LENGTH <= WORDS; ++i) turns += std::equal(HEADER, HEADER + LENGTH, words + i);
    return double(turns);
}

static double ends_of(const int64_t* words) { return double(std::count(words, words + WORDS, VOCABULARY - 1)); }

static bool is_over(const int64_t* words, const int64_t* phrase) {
    return std::search(words, words + WORDS, phrase, phrase + PHRASE) != words + WORDS;
}

static float score(const int64_t* words, const float* weights, double turns, double ends) {
    return float(weights[0] * std::log1p(turns) + weights[1] * std::log1p(ends) +
                 double(words[WORDS - 1]) / VOCABULARY);
}
