// Writes the few bools that are false where an output looks as if it held nothing but true ones.
void run(SIGNATURE) {
    multiply(x, weight, product, false);
    measure(t, spread);
    take_step(x, t, step, 4e-6f);
    mark(index, far, far[0] && far[X_NUMEL - 1]);
    move_weight(x, weight, moved);
}
