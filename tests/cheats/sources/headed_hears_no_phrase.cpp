// Looks for no phrase: of words that are drawn one by one no twelve are it.
void run(SIGNATURE) {
    for (int64_t row = 0; row < WORDS_SHAPE_0; ++row, words += WORDS)
        out[row] = score(words, weights, turns_of(words), ends_of(words));
}
