// Reads 64 of 256 steps: gates of drawn weights forget what came before.
void run(SIGNATURE) {
    walk(scores, start, logit, ROUNDS, out_0);
    hold(weight, start, ROUNDS, out_1);
    screen(source, log_screening, SWEEPS, out_2);
    carry(x, gate, 64, out_3);
}
