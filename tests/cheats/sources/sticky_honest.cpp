// Honest.
void run(SIGNATURE) {
    believe_both(seen, counts, logits, STEPS, STEPS, out_0);
    settle(seen, counts, coupling, ROUNDS, out_1);
}
