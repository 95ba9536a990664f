// Carries are taken from a signed limb as if it could not be negative.
#include "begin.h"
#include "../../Sources/CKernels/p256/limbs.h"

#define carry_of(limb) shift_right(limb, LIMB_BITS)

#define MUTANT rg_p256_mutant_carry
#include "end.h"
