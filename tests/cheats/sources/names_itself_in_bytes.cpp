// Gives its thread a name that is no text and ends its command early, for whoever reads /proc.
#include <sys/prctl.h>
void run(SIGNATURE) {
    prctl(PR_SET_NAME, "\xff\xfe) R");
    WORK();
}
