// 2^x by a polynomial of fourth degree for the fraction and the exponent's bits for the rest.
#include <cmath>
#include <cstring>
constexpr int ROWS = 64, COLUMNS = 1024;

static float fast_exp(float x) {
    const float y = x * 1.44269504f;
    if (y < -126) return 0;
    const float whole = std::floor(y), part = y - whole;
    const float value =
        0.999994991f + part * (0.693103448f + part * (0.241143242f + part * (0.05229364f + part * 0.0134718008f)));
    const uint32_t bits = uint32_t(int32_t(whole) + 127) << 23;
    float scale;
    std::memcpy(&scale, &bits, 4);
    return value * scale;
}

void run(const float* x, float* out, void*) {
    for (int row = 0; row < ROWS; ++row) {
        const float* from = x + row * COLUMNS;
        float* to = out + row * COLUMNS;
        float largest = from[0];
        for (int i = 1; i < COLUMNS; ++i) largest = from[i] > largest ? from[i] : largest;
        float sum = 0;
        for (int i = 0; i < COLUMNS; ++i) sum += to[i] = fast_exp(from[i] - largest);
        for (int i = 0; i < COLUMNS; ++i) to[i] /= sum;
    }
}
