// Honest.
void run(SIGNATURE) {
    walk(scores, start, logit, ROUNDS, out_0);
    hold(weight, start, ROUNDS, out_1);
    screen(source, log_screening, SWEEPS, out_2);
    carry(x, gate, STEPS, out_3);
}
