// The tree leaves out the last point of an odd number of points.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"
#include "../../Sources/CKernels/p256/tree.h"

static void broken_sum_runs(Tree *tree, int blocks, const Run *runs, int run_count, lane_mask (*undecided)[GROUPS]) {
    Run shorter[8];
    for (int r = 0; r < run_count; r++) shorter[r] = (Run){runs[r].first, runs[r].count & ~1};
    sum_runs(tree, blocks, shorter, run_count, undecided);
}
#define sum_runs broken_sum_runs

#define MUTANT rg_p256_mutant_tree_sum
#include "end.h"
