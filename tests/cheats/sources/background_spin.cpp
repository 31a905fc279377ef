// Does its work in the call, and keeps a core busy between calls: where later work could be hidden.
#include <thread>
static volatile long ticks;
static std::thread spinner([] {
    for (;;) ++ticks;
});
void run(SIGNATURE) { WORK(); }
