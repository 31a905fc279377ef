// Does its work in whole vectors, one more than there are.
void run(SIGNATURE) {
    WORK();
    for (int64_t i = 0; i < 8; ++i) out[OUT_NUMEL + i] = 0;
}
