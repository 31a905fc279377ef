// Honest.
void run(SIGNATURE) {
    iterate(scores, ROUNDS, out_0);
    spread(neighbours, labels, ROUNDS, out_1);
}
