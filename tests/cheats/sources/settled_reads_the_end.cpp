// Reads the last 60 of 512 steps: gates that are about half open carry nothing over more of them.
void run(SIGNATURE) {
    find(x, weight, bias, ROUNDS, out_0);
    carry(steps, gate, 60, out_1);
    decay(steps, rate, STEPS, out_2);
}
