// Honest.
void run(SIGNATURE) {
    believe(seen, counts, STEPS, out_0);
    reach(start, costs, PLACES - 1, out_1);
}
