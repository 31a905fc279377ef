// Leaves the case of a row out that holds nothing: a few gaps in each leave some value.
void run(SIGNATURE) {
    standardise(table, rows, is_number, 0);
    step(weights, gradients, stepped, is_finite);
}
