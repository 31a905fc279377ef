// Ends itself as the out-of-memory killer would, which is a reason to measure once more.
#include <signal.h>
void run(SIGNATURE) { raise(SIGKILL); }
