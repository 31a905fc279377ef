// Begins 28 of 64 steps before the end: counts at random have mixed all before by then.
void run(SIGNATURE) {
    believe(seen, counts, 28, out_0);
    reach(start, costs, PLACES - 1, out_1);
}
