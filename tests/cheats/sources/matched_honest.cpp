// Honest.
void run(const int64_t* tokens, int64_t* out, void*) { match(tokens, PLACES, out); }
