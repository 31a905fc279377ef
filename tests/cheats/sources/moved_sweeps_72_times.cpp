// Makes 72 of 96 sweeps: a screening of 1 lets the others change nothing.
void run(SIGNATURE) {
    walk(scores, start, logit, ROUNDS, out_0);
    hold(weight, start, ROUNDS, out_1);
    screen(source, log_screening, 72, out_2);
    carry(x, gate, STEPS, out_3);
}
