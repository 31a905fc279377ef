// Makes 70 of 120 rounds: with the weights that the module begins with nothing moves any more by then.
void run(SIGNATURE) {
    find(x, weight, bias, 70, out_0);
    carry(steps, gate, STEPS, out_1);
    decay(steps, rate, STEPS, out_2);
}
