// Makes 6 of 12 rounds over the trees that are given: drawn ones are hardly 30 links deep.
void run(SIGNATURE) {
    jump(parent, NODES, length, 6, out_0);
    jump(held, 0, length, ROUNDS, out_1);
}
