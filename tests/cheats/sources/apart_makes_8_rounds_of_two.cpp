// Makes 8 of 32 rounds between rows and columns: drawn scores have one direction that leads by far.
void run(SIGNATURE) {
    iterate(scores, 8, out_0);
    spread(neighbours, labels, ROUNDS, out_1);
}
