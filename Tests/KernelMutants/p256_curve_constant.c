// The curve has another b.
#include "begin.h"
#include "../../Sources/CKernels/p256/constants.h"

#define CURVE_B GENERATOR_X

#define MUTANT rg_p256_mutant_curve_constant
#include "end.h"
