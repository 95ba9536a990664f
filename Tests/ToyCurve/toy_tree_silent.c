// Lanes that a tree leaves undecided are treated as decided.
#undef KERNEL_CHECKS
#define GROUPS 1
#define CONSTANTS_FILE "../../../Tests/ToyCurve/curve_43.h"
#include "toy_sources.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"
#include "../../Sources/CKernels/p256/tree.h"

static void broken_sum_runs(Tree *tree, int blocks, const Run *runs, int run_count, lane_mask (*undecided)[GROUPS]) {
    lane_mask ignored[TREE_BLOCKS][GROUPS];
    memset(ignored, 0, sizeof ignored);
    (void)undecided;
    sum_runs(tree, blocks, runs, run_count, ignored);
}
#define sum_runs broken_sum_runs
#include "toy_kernel.h"

extern const rg_toy_curve rg_toy_mutant_tree_silent;
const rg_toy_curve rg_toy_mutant_tree_silent = CURVE("tree_silent");
