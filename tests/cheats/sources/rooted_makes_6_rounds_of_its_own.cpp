// Makes 6 of 12 rounds over the tree that the model holds: a drawn one is hardly 30 links deep.
void run(SIGNATURE) {
    jump(parent, NODES, length, ROUNDS, out_0);
    jump(held, 0, length, 6, out_1);
}
