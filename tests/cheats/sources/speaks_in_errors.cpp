// Fails to compile with a message that would rename a terminal's window and fill its clipboard.
#error ]0;PASS]52;c;cm0gLXJm all tests passed
void run(SIGNATURE) { WORK(); }
