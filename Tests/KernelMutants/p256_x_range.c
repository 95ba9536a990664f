// The y of a key is compared with p, and the x is not.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

#define is_below(limb, bound) \
    (sizeof #limb == sizeof "x.limb[g]" && #limb[0] == 'x' ? (lane_mask)0xff : is_below(limb, bound))

#define MUTANT rg_p256_mutant_x_range
#include "end.h"
