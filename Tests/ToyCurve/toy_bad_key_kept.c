// The generator does not take the place of a key that is no point of the curve.
#undef KERNEL_CHECKS
#define GROUPS 1
#define CONSTANTS_FILE "../../../Tests/ToyCurve/curve_43.h"
#include "toy_sources.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"
#include "../../Sources/CKernels/p256/tree.h"

#define choose_limbs(r, mask, a, b) choose_limbs(r, #mask[0] == 'g' ? (lane_mask)ALL_LANES : (mask), a, b)
#include "toy_kernel.h"

extern const rg_toy_curve rg_toy_mutant_bad_key_kept;
const rg_toy_curve rg_toy_mutant_bad_key_kept = CURVE("bad_key_kept");
