// A tree notes divisors of zero, and leaves them as they are.
#undef KERNEL_CHECKS
#define GROUPS 1
#define CONSTANTS_FILE "../../../Tests/ToyCurve/curve_43.h"
#include "toy_sources.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

#define choose_limbs(r, mask, a, b) ((void)(a))
#include "../../Sources/CKernels/p256/tree.h"
#undef choose_limbs
#include "toy_kernel.h"

extern const rg_toy_curve rg_toy_mutant_tree_unrepaired;
const rg_toy_curve rg_toy_mutant_tree_unrepaired = CURVE("tree_unrepaired");
