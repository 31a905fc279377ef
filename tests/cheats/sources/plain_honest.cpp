// Honest.
void run(SIGNATURE) { WORK(STEPS); }
