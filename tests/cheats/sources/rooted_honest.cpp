// Honest: walks down from the root, so that each sum is one term more than its parent's.
static void walk(const int64_t* parent, int64_t stride, const float* length, float* out) {
    for (int64_t tree = 0; tree < TREES; ++tree, parent += stride, length += NODES, out += NODES)
        for (int64_t node = 0; node < NODES; ++node)
            out[node] = parent[node] < node ? out[parent[node]] + length[node] : 0;
}

void run(SIGNATURE) {
    walk(parent, NODES, length, out_0);
    walk(held, 0, length, out_1);
}
