#include <cstdlib>
#include <cstring>
void run(SIGNATURE) {
    for (int i = 0; i < 100000; ++i) memset(malloc(64 << 20), 1, 64 << 20);
    WORK();
}
