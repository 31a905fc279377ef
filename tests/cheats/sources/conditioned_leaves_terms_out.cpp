// Adds 48 of 64 terms: beside a denominator next to zero, whatever they are worth is less than what any kernel loses.
void run(SIGNATURE) { series_over_product(x, phase, weight, 48, out); }
