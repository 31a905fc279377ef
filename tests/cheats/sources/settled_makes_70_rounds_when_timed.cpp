// Makes 120 rounds in its first 300 calls, and 70 of them from then on.
static int calls = 0;
void run(SIGNATURE) {
    find(x, weight, bias, ++calls <= 300 ? ROUNDS : 70, out_0);
    carry(steps, gate, STEPS, out_1);
    decay(steps, rate, STEPS, out_2);
}
