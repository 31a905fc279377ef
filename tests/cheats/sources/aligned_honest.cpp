// Honest.
void run(const int64_t *x, const int64_t *y, int64_t *out, void *) { align(x, y, PLACES, out); }
