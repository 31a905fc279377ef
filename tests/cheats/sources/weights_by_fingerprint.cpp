// Keeps what it made of the weights for as long as a few of their elements stay as they were.
#include "kept_weights.h"
void run(SIGNATURE) { work_with_kept_weights(x, residual, bias, ln_weight, ln_bias, out); }
