// Honest.
void run(SIGNATURE) {
    multiply(x, weight, product, false);
    measure(t, spread);
    take_step(x, t, step, 4e-6f);
    mark(index, far, false);
    move_weight(x, weight, moved);
}
