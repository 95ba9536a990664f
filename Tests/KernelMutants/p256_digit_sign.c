// The sign of a scalar that was negated to make it odd is lost in one lane.
#include "begin.h"
#include "../../Sources/CKernels/p256/scalar.h"

INLINE lane_mask broken_make_odd(lanes u[LIMBS]) { return make_odd(u) & 0x7f; }
#define make_odd broken_make_odd

#define MUTANT rg_p256_mutant_digit_sign
#include "end.h"
