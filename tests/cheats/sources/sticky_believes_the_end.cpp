// Begins 24 of 64 steps before the end: random transitions have mixed all before by then.
void run(SIGNATURE) {
    believe_both(seen, counts, logits, 24, STEPS, out_0);
    settle(seen, counts, coupling, ROUNDS, out_1);
}
