// Not the same twice: a race would look like this.
#include <ctime>
void run(SIGNATURE) {
    WORK();
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    out[OUT_NUMEL / 2] *= 1.0f + 1e-1f * float(now.tv_nsec % 1000) / 1000.0f;
}
