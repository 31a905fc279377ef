// Makes its own input easier.
void run(SIGNATURE) {
    const_cast<float*>(x)[7] = 0;
    WORK();
}
