// Reads 48 of 128 steps: gates of drawn weights forget what came before.
void run(SIGNATURE) {
    walk(scores, start, logit, ROUNDS, out_0);
    hold(weight, start, ROUNDS, out_1);
    screen(source, log_screening, SWEEPS, out_2);
    carry(x, gate, 48, out_3);
}
