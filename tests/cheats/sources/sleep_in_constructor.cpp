// Never finishes loading.
#include <unistd.h>
__attribute__((constructor)) static void wait() {
    for (;;) sleep(1000);
}
void run(SIGNATURE) { WORK(); }
