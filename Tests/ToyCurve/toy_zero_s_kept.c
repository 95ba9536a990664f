// An s that is out of range is not replaced.
#undef KERNEL_CHECKS
#define GROUPS 1
#define CONSTANTS_FILE "../../../Tests/ToyCurve/curve_43.h"
#include "toy_sources.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"
#include "../../Sources/CKernels/p256/tree.h"

#define choose_limbs(r, mask, a, b) choose_limbs(r, #mask[1] == 'n' ? (lane_mask)ALL_LANES : (mask), a, b)
#include "toy_kernel.h"

extern const rg_toy_curve rg_toy_mutant_zero_s_kept;
const rg_toy_curve rg_toy_mutant_zero_s_kept = CURVE("zero_s_kept");
