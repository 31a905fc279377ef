// Strassen's product: each of the LEVELS saves an eighth of the multiplications and costs digits.
#include <cstring>
constexpr int SIZE = 256;

static void add(const float* a, const float* b, float sign, float* out, int n, int stride_a, int stride_b) {
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) out[i * n + j] = a[i * stride_a + j] + sign * b[i * stride_b + j];
}

static void plain(const float* a, const float* b, float* out, int n) {
    std::memset(out, 0, sizeof(float) * n * n);
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < n; ++k)
            for (int j = 0; j < n; ++j) out[i * n + j] += a[i * n + k] * b[k * n + j];
}

// Multiplies dense n x n matrices; `free` has room for 4 n^2 numbers.
static void product(const float* a, const float* b, float* out, int n, int levels, float* free) {
    if (levels == 0) return plain(a, b, out, n);
    const int h = n / 2;
    float *s = free, *t = s + h * h, *p = t + h * h, *rest = p + h * h;
    const float *a11 = a, *a12 = a + h, *a21 = a + h * n, *a22 = a21 + h;
    const float *b11 = b, *b12 = b + h, *b21 = b + h * n, *b22 = b21 + h;
    struct Term {
        const float *a1, *a2;
        float a_sign;
        const float *b1, *b2;
        float b_sign;
        float to[4];  // out11, out12, out21, out22
    };
    const Term terms[7] = {{a11, a22, 1, b11, b22, 1, {1, 0, 0, 1}},  {a21, a22, 1, b11, b11, 0, {0, 0, 1, -1}},
                           {a11, a11, 0, b12, b22, -1, {0, 1, 0, 1}}, {a22, a22, 0, b21, b11, -1, {1, 0, 1, 0}},
                           {a11, a12, 1, b22, b22, 0, {-1, 1, 0, 0}}, {a21, a11, -1, b11, b12, 1, {0, 0, 0, 1}},
                           {a12, a22, -1, b21, b22, 1, {1, 0, 0, 0}}};
    std::memset(out, 0, sizeof(float) * n * n);
    for (const Term& term : terms) {
        add(term.a1, term.a2, term.a_sign, s, h, n, n);
        add(term.b1, term.b2, term.b_sign, t, h, n, n);
        product(s, t, p, h, levels - 1, rest);
        for (int q = 0; q < 4; ++q)
            if (term.to[q] != 0)
                for (int i = 0; i < h; ++i)
                    for (int j = 0; j < h; ++j) out[(i + q / 2 * h) * n + q % 2 * h + j] += term.to[q] * p[i * h + j];
    }
}

void run(const float* a, const float* b, float* out, void* workspace) {
    product(a, b, out, SIZE, LEVELS, static_cast<float*>(workspace));
}

extern "C" size_t workspace_bytes() { return sizeof(float) * 4 * SIZE * SIZE; }
