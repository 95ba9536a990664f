// Sums of many affine points by pairs, level by level. All additions of a level, over all blocks of a batch, share one
// division; so an affine addition costs half of a Jacobian one.
//
// The exceptional case. Adding a and b divides by 2 (xb - xa), which is 0 exactly when b is a or -a. Then the product
// of all divisors of the level is 0 in that lane too, and the inversion fails, for all lanes. `tree_repair` notes the
// lane as undecided and puts a divisor of 1 there. The lane's sum is worth nothing from then on, but its values keep
// their bounds, and the other additions and lanes get their inverses. A sum that is worth nothing can have the x of its
// neighbour on a later level; then the same happens again.
#pragma once

#include "group.h"
#include "known_keys.h"

#ifndef TREE_CHECKS
/// Checks whose trees are summed together, at most.
#define TREE_CHECKS 128
#endif

_Static_assert(TREE_CHECKS % BLOCK == 0, "whole blocks");

/// Points at every `stride`th place from `first` on.
typedef struct {
    int first, count;
} Run;

enum {
    /// The digits of a scalar, in the shape of the generator.
    GENERATOR_DIGITS = 20,
    /// Points of one block, at most.
    TREE_POINTS = KNOWN_KEY_DIGITS + GENERATOR_DIGITS,
    /// Blocks whose trees are summed together, at most.
    TREE_BLOCKS = TREE_CHECKS / BLOCK,
};

/// The points of one block. Here y2 may also have limbs with a sign, and be from -0.1 p to 1.1 p (`check_leaf`).
typedef struct {
    Affine point[TREE_POINTS];
} Leaves;

typedef struct {
    Leaves leaves[TREE_BLOCKS];
    Digits divisor[TREE_BLOCKS * TREE_POINTS / 2], prefix[TREE_BLOCKS * TREE_POINTS / 2];
} Tree;

/// A point whose y2 may have been negated, p - y2, without a reduction.
INLINE void check_leaf(const Affine *a) {
    check_coordinate(&a->x);
    check_signed_digits(&a->y2, -0.1, 1.1, "tree: 2 y from -0.1 p to 1.1 p");
}

/// 2 (xb - xa), from 1.9 p to 6.1 p, and its product with those `before`.
NOINLINE void tree_divisor(Digits *divisor, Digits *prefix, const Affine *a, const Affine *b, const Digits *before) {
    const Digits own = factor_difference(&b->x, &a->x, 1);
    *divisor = own;
    *prefix = product_digits(product(&own, before));
    check_digits(divisor, 1.9, 6.1, "tree: divisor from 1.9 p to 6.1 p");
    check_digits(prefix, 0, 1.7, "tree: product of divisors at most 1.7 p");
}

/// A leaf's y2 as a sum.
INLINE Sum sum_of_signed(const Digits *y2) {
    Sum r;
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = y2->limb[g][i];
    return r;
}

// slope = (2 yb - 2 ya) / (2 (xb - xa));  x' = slope^2 - xa - xb;  2 y' = slope 2 (xa - x') - 2 ya

NOINLINE void tree_slope(Digits *slope, const Affine *a, const Affine *b, const Digits *inverse) {
    check_digits(inverse, 0, 1.7, "tree: inverse at most 1.7 p");
    const Sum y_difference = add_p(subtract(sum_of_signed(&b->y2), sum_of_signed(&a->y2)), 3);
    check_sum_range(&y_difference, 1.9, 4.1, "tree: 2 yb - 2 ya + 3 p from 1.9 p to 4.1 p");
    const Digits factor = digits(y_difference);
    *slope = product_digits(product(&factor, inverse));
    check_digits(slope, 0, 1.4, "tree: slope at most 1.4 p");
}

/// x' in place of xa, and 2 (xa - x').
NOINLINE void tree_x(Digits *xa, Digits *x_difference, const Digits *slope, const Digits *xb) {
    const Sum sum = add_p(subtract(subtract(square(slope), sum_of(xa)), sum_of(xb)), 3);
    check_sum_range(&sum, 0.9, 4.2, "tree: slope^2 - xa - xb + 3 p from 0.9 p to 4.2 p");
    const Digits x = clean_digits(sum);
    *x_difference = factor_difference(xa, &x, 1);
    *xa = x;
}

NOINLINE void tree_y(Digits *y2, const Digits *slope, const Digits *x_difference) {
    const Sum sum = add_p(subtract(product(slope, x_difference), sum_of_signed(y2)), 2);
    check_sum_range(&sum, 0.9, 3.6, "tree: 2 y' from 0.9 p to 3.6 p before it is reduced");
    *y2 = clean_digits(sum);
}

/// a = a + b, of the inverse of their divisor; clean.
INLINE void tree_add(Affine *a, const Affine *b, const Digits *inverse) {
    Digits slope, x_difference;
    check_leaf(a);
    check_leaf(b);
    tree_slope(&slope, a, b, inverse);
    tree_x(&a->x, &x_difference, &slope, &b->x);
    tree_y(&a->y2, &slope, &x_difference);
    check_affine(a);
}

/// Replaces divisors that are zero in some lane by one there, and notes the lanes: two of their points have the same x,
/// and the formula does not hold.
NOINLINE void tree_repair(Digits *divisor, int count, int blocks, lane_mask (*undecided)[GROUPS]) {
    const Digits one = constant(P_ONE);
    for (int k = 0; k < count; k++) {
        lane_mask zero[GROUPS];
        is_zero(zero, &divisor[k]);
        EACH_GROUP(g) {
            undecided[k % blocks][g] |= zero[g];
            choose_limbs(divisor[k].limb[g], zero[g], one.limb[g], divisor[k].limb[g]);
        }
    }
}

INLINE void tree_prefixes(Tree *tree, int count) {
    tree->prefix[0] = tree->divisor[0];
    for (int k = 1; k < count; k++) multiply(&tree->prefix[k], &tree->prefix[k - 1], &tree->divisor[k]);
}

/// The runs are disjoint parts of a block's points. So a level has at most half as many additions as there are points,
/// and as many divisors as there is room for.
INLINE void check_runs(int blocks, const Run *runs, int run_count) {
    if (!KERNEL_CHECKS_ON) return;
    kernel_check(blocks > 0 && blocks <= TREE_BLOCKS, "tree: from 1 to TREE_BLOCKS blocks");
    int end = 0;
    for (int r = 0; r < run_count; r++) {
        kernel_check(runs[r].first >= end && runs[r].count > 0, "tree: disjoint runs in ascending order");
        end = runs[r].first + runs[r].count;
    }
    kernel_check(end <= TREE_POINTS, "tree: runs within the points of a block");
}

/// Sums every run of every block into its first point. Lanes that it cannot decide are added to `undecided`.
///
/// When two parts of one scalar's digits are added, no lane becomes undecided unless the scalar is 0 modulo n. Let the
/// lower part stand for a P and the upper part for d P. d is not 0 and is a multiple of a power of 2 above |a|, so a +-
/// d is not 0. It is less than n, or even while n is odd, unless the parts are all digits of the generator's run. (Of a
/// known key's last two digits, 63 2^246 and 15 2^252 at most, a column holds only one, and the others are less than
/// 2^246 together.) Of all digits of the generator's run:
///
/// - a + d = n is a scalar of 0.
/// - d - a = n would be a scalar whose digits are those of n with the signs of the lower sixteen changed. For n these
///   sixteen are less than 0 together, and the scalar would be more than n.
///
/// When parts of both scalars are added, `decide` says who can make a lane undecided.
static void sum_runs(Tree *tree, int blocks, const Run *runs, int run_count, lane_mask (*undecided)[GROUPS]) {
    const Digits one = constant(P_ONE);
    check_runs(blocks, runs, run_count);
    for (int stride = 1;; stride *= 2) {
        // The additions of this level, block after block within each pair: number k is of block k % blocks.
        int total = 0;
        for (int r = 0; r < run_count; r++) {
            const int count = (runs[r].count + stride - 1) / stride;
            for (int pair = 0; pair < count / 2; pair++)
                for (int b = 0; b < blocks; b++) {
                    const Affine *a = &tree->leaves[b].point[runs[r].first + 2 * pair * stride];
                    tree_divisor(
                        &tree->divisor[total], &tree->prefix[total], a, a + stride,
                        total > 0 ? &tree->prefix[total - 1] : &one);
                    total++;
                }
        }
        if (total == 0) return;
        Digits inverse;
        if (!invert_digits(&inverse, &tree->prefix[total - 1])) {
            tree_repair(tree->divisor, total, blocks, undecided);
            tree_prefixes(tree, total);
            // Now no divisor is zero, and neither is their product: p is a prime.
            const int is_inverted = invert_digits(&inverse, &tree->prefix[total - 1]);
            kernel_check(is_inverted, "tree: no divisor is zero after the repair");
        }
        for (int r = run_count - 1; r >= 0; r--) {
            const int count = (runs[r].count + stride - 1) / stride;
            for (int pair = count / 2 - 1; pair >= 0; pair--)
                for (int b = blocks - 1; b >= 0; b--) {
                    Affine *a = &tree->leaves[b].point[runs[r].first + 2 * pair * stride];
                    if (--total > 0) {
                        Digits own;
                        multiply(&own, &inverse, &tree->prefix[total - 1]);
                        multiply(&inverse, &inverse, &tree->divisor[total]);
                        tree_add(a, a + stride, &own);
                    } else {
                        tree_add(a, a + stride, &inverse);
                    }
                }
        }
    }
}
