// Leaves the work to a library.
extern "C" void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
void run(SIGNATURE) { cblas_sgemm(101, 111, 111, 16, 16, 16, 1, x, 16, residual, 16, 0, out, 16); }
