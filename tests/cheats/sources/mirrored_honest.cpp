// Honest: a factor of each matrix, by Cholesky.
#include "measured.h"
#include "cholesky.h"

void run(SIGNATURE) { solve_symmetric(covariance, targets, out, solve); }
