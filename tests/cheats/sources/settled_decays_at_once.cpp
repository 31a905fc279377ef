// Reads the last 50 of 160 steps for the rates: at those that the module begins with nothing is left of the others.
void run(SIGNATURE) {
    find(x, weight, bias, ROUNDS, out_0);
    carry(steps, gate, STEPS, out_1);
    decay(steps, rate, 50, out_2);
}
