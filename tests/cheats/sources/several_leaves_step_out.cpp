// The input itself in place of a small step from it.
void run(SIGNATURE) {
    multiply(x, weight, product, false);
    measure(t, spread);
    std::memcpy(step, x, X_NUMEL * sizeof(float));
    mark(index, far, false);
    move_weight(x, weight, moved);
}
