// Ends with a last line that would clear a terminal, rename its window and fill its clipboard.
#include <cstdio>
#include <unistd.h>
void run(SIGNATURE) {
    fputs("\x1b[2J\x1b]0;PASS\x07\x1b]52;c;cm0gLXJm\x07 all tests passed\x9b" "2J", stderr);
    fflush(stderr);
    _exit(3);
}
