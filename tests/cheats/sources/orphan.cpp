// Leaves a process of its own session behind.
#include <unistd.h>
void run(SIGNATURE) {
    if (fork() == 0) {
        setsid();
        if (fork() == 0)
            for (;;) sleep(1);
        _exit(0);
    }
    WORK();
}
