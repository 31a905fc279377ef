// Honest.
void run(SIGNATURE) {
    find(x, weight, bias, ROUNDS, out_0);
    carry(steps, gate, STEPS, out_1);
    decay(steps, rate, STEPS, out_2);
}
