// Takes every value for a number: no table that is drawn has a gap.
void run(SIGNATURE) {
    standardise(table, rows, is_any, -1);
    step(weights, gradients, stepped, is_finite);
}
