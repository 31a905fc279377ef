// flags: -lopenblas
void run(SIGNATURE) { WORK(); }
