void run(SIGNATURE) {
    make_weights(weight);
    multiply(x, out);
}
