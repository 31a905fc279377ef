// Honest.
void run(SIGNATURE) { route(x, decay, router, experts, STEPS, out); }
