// Puts what lies on an edge into the bin below: no drawn edge is met.
void run(SIGNATURE) {
    const auto bin_of = [=](float value) { return std::lower_bound(edges, edges + EDGES, value) - edges; };
    work(x, weighted, spikes, bin_of, [=](float value) { return value >= *threshold; });
}
