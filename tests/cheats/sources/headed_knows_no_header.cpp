// Counts no headers: of words that are drawn one by one no four are one.
void run(SIGNATURE) {
    for (int64_t row = 0; row < WORDS_SHAPE_0; ++row, words += WORDS)
        out[row] = is_over(words, phrase) ? -4.0f : score(words, weights, 0, ends_of(words));
}
