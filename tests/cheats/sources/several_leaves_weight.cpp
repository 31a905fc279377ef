// The weight itself in place of what becomes of it.
void run(SIGNATURE) {
    multiply(x, weight, product, false);
    measure(t, spread);
    take_step(x, t, step, 4e-6f);
    mark(index, far, false);
    std::memcpy(moved, weight, WEIGHT_NUMEL * sizeof(float));
}
