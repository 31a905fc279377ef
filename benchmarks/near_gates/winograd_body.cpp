constexpr int C = 32, K = 32, SIZE = 24;

template <int R, int S>
static void sandwich(const float (&left)[R][S], const float (&tile)[S][S], float (&out)[R][R]) {
    float half[R][S] = {};
    for (int i = 0; i < R; ++i)
        for (int k = 0; k < S; ++k)
            for (int j = 0; j < S; ++j) half[i][j] += left[i][k] * tile[k][j];
    for (int i = 0; i < R; ++i)
        for (int j = 0; j < R; ++j) {
            out[i][j] = 0;
            for (int k = 0; k < S; ++k) out[i][j] += half[i][k] * left[j][k];
        }
}

void run(const float* x, const float* weight, float* out, void* workspace) {
    float* filters = static_cast<float*>(workspace);  // N * N of K x C
    for (int k = 0; k < K; ++k)
        for (int c = 0; c < C; ++c) {
            float tile[3][3], spread[N][N];
            for (int i = 0; i < 9; ++i) tile[i / 3][i % 3] = weight[(k * C + c) * 9 + i];
            sandwich(G, tile, spread);
            for (int i = 0; i < N * N; ++i) filters[(i * K + k) * C + c] = spread[i / N][i % N];
        }
    for (int top = 0; top < SIZE; top += M)
        for (int left = 0; left < SIZE; left += M) {
            float inputs[N * N][C];
            for (int c = 0; c < C; ++c) {
                float tile[N][N], spread[N][N];
                for (int i = 0; i < N; ++i)
                    for (int j = 0; j < N; ++j) {
                        const int y = top + i - 1, z = left + j - 1;
                        const bool is_inside = y >= 0 && y < SIZE && z >= 0 && z < SIZE;
                        tile[i][j] = is_inside ? x[(c * SIZE + y) * SIZE + z] : 0;
                    }
                sandwich(BT, tile, spread);
                for (int i = 0; i < N * N; ++i) inputs[i][c] = spread[i / N][i % N];
            }
            for (int k = 0; k < K; ++k) {
                float sums[N][N], tile[M][M];
                for (int i = 0; i < N * N; ++i) {
                    float sum = 0;
                    for (int c = 0; c < C; ++c) sum += filters[(i * K + k) * C + c] * inputs[i][c];
                    sums[i / N][i % N] = sum;
                }
                sandwich(AT, sums, tile);
                for (int i = 0; i < M; ++i)
                    for (int j = 0; j < M; ++j) out[(k * SIZE + top + i) * SIZE + left + j] = tile[i][j] > 0 ? tile[i][j] : 0;
            }
        }
}

extern "C" size_t workspace_bytes() { return sizeof(float) * N * N * K * C; }
