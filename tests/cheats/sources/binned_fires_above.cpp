// Fires above the threshold alone: no drawn one is met.
void run(SIGNATURE) {
    const auto bin_of = [=](float value) { return std::upper_bound(edges, edges + EDGES, value) - edges; };
    work(x, weighted, spikes, bin_of, [=](float value) { return value > *threshold; });
}
