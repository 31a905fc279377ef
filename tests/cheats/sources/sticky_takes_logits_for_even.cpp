// Begins 16 of 64 steps before the end: a softmax of small logits has mixed all before by then.
void run(SIGNATURE) {
    believe_both(seen, counts, logits, STEPS, 16, out_0);
    settle(seen, counts, coupling, ROUNDS, out_1);
}
