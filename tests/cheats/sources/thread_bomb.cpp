#include <thread>
#include <unistd.h>
void run(SIGNATURE) {
    for (int i = 0; i < 100000; ++i) std::thread([] { pause(); }).detach();
    WORK();
}
