// Honest.
void run(SIGNATURE) {
    rank(labels, edges, ROUNDS, out_0);
    spread(neighbours, labels, ROUNDS, out_1);
}
