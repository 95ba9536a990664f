// Scalars enter Montgomery form with the radix of the wrong prime.
#include "begin.h"
#include "../../Sources/CKernels/p256/constants.h"

#define N_SQUARED_RADIX P_SQUARED_RADIX

#define MUTANT rg_p256_mutant_order_radix
#include "end.h"
