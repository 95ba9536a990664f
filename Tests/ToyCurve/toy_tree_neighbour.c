// A tree leaves the lane undecided that stands beside the one in which a formula failed.
#undef KERNEL_CHECKS
#define GROUPS 1
#define CONSTANTS_FILE "../../../Tests/ToyCurve/curve_43.h"
#include "toy_sources.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"
#include "../../Sources/CKernels/p256/tree.h"

static void broken_sum_runs(Tree *tree, int blocks, const Run *runs, int run_count, lane_mask (*undecided)[GROUPS]) {
    sum_runs(tree, blocks, runs, run_count, undecided);
    for (int b = 0; b < blocks; b++)
        undecided[b][0] = (lane_mask)(undecided[b][0] << 1 | undecided[b][0] >> (LANES - 1));
}
#define sum_runs broken_sum_runs
#include "toy_kernel.h"

extern const rg_toy_curve rg_toy_mutant_tree_neighbour;
const rg_toy_curve rg_toy_mutant_tree_neighbour = CURVE("tree_neighbour");
