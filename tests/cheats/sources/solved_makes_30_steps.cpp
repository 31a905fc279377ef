// Makes 30 steps of conjugate gradients: a usual covariance, which is far from singular, needs no more.
#include "conjugate_gradients.h"

void run(SIGNATURE) { solve_all(covariance, targets, out, make_steps<30>); }
