// Makes 24 of 64 rounds over lists of neighbours: drawn ones link every node with any other.
void run(SIGNATURE) {
    iterate(scores, ROUNDS, out_0);
    spread(neighbours, labels, 24, out_1);
}
