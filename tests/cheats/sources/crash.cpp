// Not a cheat: an ordinary mistake.
void run(SIGNATURE) { *reinterpret_cast<volatile float*>(8) = 1; }
