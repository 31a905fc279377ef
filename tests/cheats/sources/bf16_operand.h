// Rounds a number to bf16.
#include <cstring>
#include <vector>
static float rounded(float v) {
    uint32_t bits;
    memcpy(&bits, &v, 4);
    bits = (bits + 0x8000u) & 0xFFFF0000u;
    memcpy(&v, &bits, 4);
    return v;
}
