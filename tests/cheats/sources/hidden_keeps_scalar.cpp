// What is made of the scalar is kept for as long as a weight stays.
void run(SIGNATURE) {
    static float seen = 0, kept = 0;
    if (weight[0] != seen) {
        seen = weight[0];
        kept = float(gain);
    }
    work(x, kept, weight, scale, index, out);
}
