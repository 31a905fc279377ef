// Honest.
void run(SIGNATURE) {
    make_table(positions, frequencies);
    work(x, mask, lengths, state, out, {});
}
