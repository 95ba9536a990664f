// An s may be more than n.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

INLINE lane_mask is_not_order(const lanes s[LIMBS]) {
    lanes rest[LIMBS];
    EACH_LIMB(i) rest[i] = minus(s[i], broadcast(N_LIMBS[i]));
    return is_nonzero(rest);
}
#define is_below(limb, bound) \
    (sizeof #limb == sizeof "s" && #limb[0] == 's' ? is_not_order(limb) : is_below(limb, bound))

#define MUTANT rg_p256_mutant_s_range
#include "end.h"
