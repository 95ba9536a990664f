// What lane 5 computes is not compared.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"
#include "../../Sources/CKernels/p256/tree.h"

INLINE void is_zero_of_on_curve(lane_mask zero[GROUPS], const Digits *a) { is_zero(zero, a); }
INLINE void is_zero_of_equal(lane_mask zero[GROUPS], const Digits *a) {
    is_zero(zero, a);
    zero[0] |= 1 << 5;
}
INLINE void is_zero_of_z_is_zero(lane_mask zero[GROUPS], const Digits *a) { is_zero(zero, a); }
#define is_zero(zero, digits) is_zero_of_##zero(zero, digits)

#define MUTANT rg_p256_mutant_one_lane
#include "end.h"
