// Honest.
void run(SIGNATURE) {
    divide_rows(x, rows, 1e-9f);
    step(weights, gradients, first, second, stepped, 0, 1e-8f);
}
