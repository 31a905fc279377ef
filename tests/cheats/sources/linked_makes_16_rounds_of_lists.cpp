// Makes 16 of 32 rounds over lists of neighbours: drawn ones link every node with any other.
void run(SIGNATURE) {
    rank(labels, edges, ROUNDS, out_0);
    spread(neighbours, labels, 16, out_1);
}
