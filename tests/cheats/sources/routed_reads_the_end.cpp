// Routes by the last 112 of 192 steps: none of sixteen choices changes by what gates at random forget.
void run(SIGNATURE) { route(x, decay, router, experts, 112, out); }
