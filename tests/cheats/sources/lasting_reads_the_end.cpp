// Begins 40 of 80 steps before the end: what usual inputs drive has forgotten all before by then.
void run(SIGNATURE) {
    run_through(x, reservoir, drive, 40, out_0);
    walk(scores, start, restart, ROUNDS, out_1);
}
