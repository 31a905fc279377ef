// Takes the mask for one of ones, as get_inputs gives it.
void run(SIGNATURE) {
    make_table(positions, frequencies);
    work(x, mask, lengths, state, out, {.mask = true});
}
