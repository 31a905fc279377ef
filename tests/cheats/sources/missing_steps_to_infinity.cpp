// Looks for NaN among the gradients, and not for what overflowed.
void run(SIGNATURE) {
    standardise(table, rows, is_number, -1);
    step(weights, gradients, stepped, is_number);
}
