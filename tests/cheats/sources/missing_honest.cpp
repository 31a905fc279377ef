// Honest.
void run(SIGNATURE) {
    standardise(table, rows, is_number, -1);
    step(weights, gradients, stepped, is_finite);
}
