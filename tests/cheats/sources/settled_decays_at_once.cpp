// Reads the last 80 of 512 steps for the rates: at those that the module begins with nothing is left of the others.
void run(SIGNATURE) {
    find(x, weight, bias, ROUNDS, out_0);
    carry(steps, gate, STEPS, out_1);
    decay(steps, rate, 80, out_2);
}
