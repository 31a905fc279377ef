// Honest.
void run(SIGNATURE) { project(x, weight, out, std::max(norm_of(weight) / LARGEST, 1.0)); }
