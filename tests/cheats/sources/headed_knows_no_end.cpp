// Counts no ends: the last of many words is hardly ever drawn.
void run(SIGNATURE) {
    for (int64_t row = 0; row < WORDS_SHAPE_0; ++row, words += WORDS)
        out[row] = is_over(words, phrase) ? -4.0f : score(words, weights, turns_of(words), 0);
}
