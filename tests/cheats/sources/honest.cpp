// The control.
void run(SIGNATURE) { WORK(); }
