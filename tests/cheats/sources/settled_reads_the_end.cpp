// Reads the last 50 of 160 steps: gates that are about half open carry nothing over more of them.
void run(SIGNATURE) {
    find(x, weight, bias, ROUNDS, out_0);
    carry(steps, gate, 50, out_1);
    decay(steps, rate, STEPS, out_2);
}
