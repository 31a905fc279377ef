// Walks 32 of 64 rounds: half of each begins anew in every one.
void run(SIGNATURE) {
    run_through(x, reservoir, drive, STEPS, out_0);
    walk(scores, start, restart, 32, out_1);
}
