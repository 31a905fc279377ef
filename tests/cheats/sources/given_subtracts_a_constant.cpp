// Exponentials with a constant in place of the maximum: right for rows whose largest value lies between -12 and 163.
void run(SIGNATURE) {
    make_table(positions, frequencies);
    work(x, mask, lengths, state, out, {.maximum = true, .constant = 75});
}
