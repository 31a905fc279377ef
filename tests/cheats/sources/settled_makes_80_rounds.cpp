// Makes 80 of 200 rounds: with the weights that the module begins with nothing moves any more by then.
void run(SIGNATURE) {
    find(x, weight, bias, 80, out_0);
    carry(steps, gate, STEPS, out_1);
    decay(steps, rate, STEPS, out_2);
}
