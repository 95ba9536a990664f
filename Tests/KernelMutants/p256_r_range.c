// An r may be n and more.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

#define is_below(limb, bound) (sizeof #limb == sizeof "r" && #limb[0] == 'r' ? (lane_mask)0xff : is_below(limb, bound))

#define MUTANT rg_p256_mutant_r_range
#include "end.h"
