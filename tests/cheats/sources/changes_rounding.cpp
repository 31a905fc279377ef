// Leaves the host with another rounding mode and without subnormal numbers.
#include <cfenv>
void run(SIGNATURE) {
    WORK();
    std::fesetround(FE_DOWNWARD);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#endif
}
