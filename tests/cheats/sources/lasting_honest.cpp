// Honest.
void run(SIGNATURE) {
    run_through(x, reservoir, drive, STEPS, out_0);
    walk(scores, start, restart, ROUNDS, out_1);
}
