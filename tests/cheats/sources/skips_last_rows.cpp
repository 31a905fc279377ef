// Leaves the last 0.5 % of the rows.
void run(SIGNATURE) {
    work_on_rows(0, X_SHAPE_0 - (X_SHAPE_0 + 199) / 200, X_SHAPE_1, x, residual, bias, ln_weight, ln_bias, out);
}
