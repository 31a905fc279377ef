// Reports a crash at a place that is no number, for the parent to stumble over.
#include <cstring>
#include <unistd.h>
void run(SIGNATURE) {
    const char* lie = "failed crashed 11 read 0 somewhere\n";
    if (write(3, lie, strlen(lie)) > 0) pause();
    WORK();
}
