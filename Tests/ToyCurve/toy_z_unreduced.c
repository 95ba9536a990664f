// A Z of p is not taken for zero.
#undef KERNEL_CHECKS
#define GROUPS 1
#define CONSTANTS_FILE "../../../Tests/ToyCurve/curve_43.h"
#include "toy_sources.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"
#include "../../Sources/CKernels/p256/tree.h"

INLINE void is_zero_of_on_curve(lane_mask zero[GROUPS], const Digits *a) { is_zero(zero, a); }
INLINE void is_zero_of_equal(lane_mask zero[GROUPS], const Digits *a) { is_zero(zero, a); }
INLINE void is_zero_of_z_is_zero(lane_mask zero[GROUPS], const Digits *a) {
    EACH_GROUP(g) zero[g] = ALL_LANES & ~is_nonzero(a->limb[g]);
}
#define is_zero(zero, digits) is_zero_of_##zero(zero, digits)
#include "toy_kernel.h"

extern const rg_toy_curve rg_toy_mutant_z_unreduced;
const rg_toy_curve rg_toy_mutant_z_unreduced = CURVE("z_unreduced");
