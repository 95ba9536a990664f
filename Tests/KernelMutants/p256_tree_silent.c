// Lanes that the tree leaves undecided are treated as decided.
#include "begin.h"
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

#define MUTANT rg_p256_mutant_tree_silent
#include "end.h"
