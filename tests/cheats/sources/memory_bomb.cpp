#include <cstdlib>
void run(SIGNATURE) {
    for (int i = 0; i < 100000; ++i) {
        char* block = static_cast<char*>(malloc(64 << 20));
        for (int64_t at = 0; at < 64 << 20; at += 1 << 16) block[at] = 1;
    }
    WORK();
}
