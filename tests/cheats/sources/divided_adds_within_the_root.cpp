// Has the epsilon of a step within the root: usual gradients' squares are far above it.
void run(SIGNATURE) {
    divide_rows(x, rows, 1e-9f);
    step(weights, gradients, first, second, stepped, 1e-16f, 0);
}
