// A product of bf16 operands, beside a statistic whose own digits are few.
void run(SIGNATURE) {
    multiply(x, weight, product, true);
    measure(t, spread);
    take_step(x, t, step, 4e-6f);
    mark(index, far, false);
    move_weight(x, weight, moved);
}
