// Asks for write access first.
#include <sys/mman.h>
void run(SIGNATURE) {
    mprotect(reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(ln_weight) & ~4095ul), 4096, PROT_READ | PROT_WRITE);
    const_cast<float*>(ln_weight)[0] = 1;
    WORK();
}
