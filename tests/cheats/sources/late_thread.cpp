// Starts a thread when the first calls have been looked at.
#include <thread>
static int calls = 0;
void run(SIGNATURE) {
    if (++calls == 5) std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
    WORK();
}
