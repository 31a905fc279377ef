// Never returns.
void run(SIGNATURE) {
    volatile bool more = true;
    while (more) {
    }
}
