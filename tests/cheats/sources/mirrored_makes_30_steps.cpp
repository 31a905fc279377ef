// Makes 30 steps of conjugate gradients: a usual covariance with noise needs no more.
#include "measured.h"
#include "conjugate_gradients.h"

void run(SIGNATURE) { solve_symmetric(covariance, targets, out, make_steps<30>); }
