// Takes every row for a full one, as get_inputs gives them.
void run(SIGNATURE) {
    make_table(positions, frequencies);
    work(x, mask, lengths, state, out, {.lengths = true});
}
