// Makes 16 of 48 rounds: a weak attraction settles by then, and so does one that is so strong that spins are saturated.
void run(SIGNATURE) {
    believe_both(seen, counts, logits, STEPS, STEPS, out_0);
    settle(seen, counts, coupling, 16, out_1);
}
