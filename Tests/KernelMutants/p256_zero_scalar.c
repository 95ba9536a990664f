// An s of zero is taken for one in range.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

#define is_nonzero(limb) (sizeof #limb == sizeof "s" && #limb[0] == 's' ? (lane_mask)0xff : is_nonzero(limb))

#define MUTANT rg_p256_mutant_zero_scalar
#include "end.h"
