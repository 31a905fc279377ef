#include <unistd.h>
void run(SIGNATURE) {
    for (int i = 0; i < 4096; ++i)
        if (fork() == 0) pause();
    WORK();
}
