// A Z of zero is not noticed.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"
#include "../../Sources/CKernels/p256/tree.h"

INLINE void is_zero_of_on_curve(lane_mask zero[GROUPS], const Digits *a) { is_zero(zero, a); }
INLINE void is_zero_of_equal(lane_mask zero[GROUPS], const Digits *a) { is_zero(zero, a); }
INLINE void is_zero_of_z_is_zero(lane_mask zero[GROUPS], const Digits *a) {
    (void)a;
    EACH_GROUP(g) zero[g] = 0;
}
#define is_zero(zero, digits) is_zero_of_##zero(zero, digits)

#define MUTANT rg_p256_mutant_vanished
#include "end.h"
