// Counts 98304 numbers in 16 bits: right while no bin has two thirds of them.
void run(SIGNATURE) { WORK(.has_short_counts = true); }
