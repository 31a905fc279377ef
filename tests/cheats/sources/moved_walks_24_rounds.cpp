// Walks 24 of 32 rounds: half of each begins anew in every one, for a logit of 0.
void run(SIGNATURE) {
    walk(scores, start, logit, 24, out_0);
    hold(weight, start, ROUNDS, out_1);
    screen(source, log_screening, SWEEPS, out_2);
    carry(x, gate, STEPS, out_3);
}
