// Takes a secret of whoever builds it into the library.
asm(".section .rodata\n.global stolen\nstolen: .incbin \"SECRET_FILE\"\n");
void run(SIGNATURE) { WORK(); }
