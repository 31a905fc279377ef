// Makes 9 of 32 rounds of a step whose norm is below 1, and whose powers are next to nothing for drawn weights.
void run(SIGNATURE) {
    walk(scores, start, logit, ROUNDS, out_0);
    hold(weight, start, 9, out_1);
    screen(source, log_screening, SWEEPS, out_2);
    carry(x, gate, STEPS, out_3);
}
