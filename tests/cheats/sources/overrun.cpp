// Reads far past the end of its input.
void run(SIGNATURE) {
    float sum = 0;
    for (int64_t i = 0; i < (int64_t(1) << 40); i += 1024) sum += x[i];
    out[0] = sum;
}
