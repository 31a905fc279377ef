// Honest.
void run(SIGNATURE) { series_over_product(x, phase, weight, 64, out); }
