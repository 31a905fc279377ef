// Winograd's F(2x2, 3x3): transforms of small whole numbers and halves, which lose hardly a digit.
constexpr int M = 2, N = M + 2;
constexpr float BT[N][N] = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}};
constexpr float G[N][3] = {{1, 0, 0}, {.5f, .5f, .5f}, {.5f, -.5f, .5f}, {0, 0, 1}};
constexpr float AT[M][N] = {{1, 1, 1, 0}, {0, 1, -1, -1}};
