// Is slow while nothing is checked, so that its blocks are short, and dawdles in one of a block's two loops.
#include <chrono>
static long g_calls = 0;
static void spin(double seconds) {
    const auto began = std::chrono::steady_clock::now();
    while (std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() < seconds) {}
}
void run(SIGNATURE) {
    WORK();
    ++g_calls;
    if (g_calls > 120 && g_calls < 700) spin(4.2e-3);
    else if (g_calls >= 700 && g_calls % 3 == 1) spin(60e-6);
}
