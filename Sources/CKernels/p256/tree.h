// Sums of many affine points by pairs, level by level: an affine addition costs half of a Jacobian one when its
// division is shared with all other additions of a level, over all blocks of a batch.
#pragma once

#include "group.h"

/// Points at every `stride`th place from `first` on.
typedef struct {
    int first, count;
} Run;

enum {
    /// The digits of a scalar, in the shapes of known keys and of the generator.
    KNOWN_KEY_DIGITS = 43,
    GENERATOR_DIGITS = 20,
    /// Points of one block, at most.
    TREE_POINTS = KNOWN_KEY_DIGITS + GENERATOR_DIGITS,
    /// Blocks whose trees are summed together, at most.
    TREE_BLOCKS = 128 / BLOCK,
};

/// The points of one block. y2 may also hold limbs with a sign, from -p to 2 p.
typedef struct {
    Affine point[TREE_POINTS];
} Leaves;

typedef struct {
    Leaves leaves[TREE_BLOCKS];
    Digits divisor[TREE_BLOCKS * TREE_POINTS / 2], prefix[TREE_BLOCKS * TREE_POINTS / 2];
} Tree;

/// 2 (xb - xa), from 0.9 p to 6.2 p, and its product with those `before`.
NOINLINE void tree_divisor(Digits *divisor, Digits *prefix, const Affine *a, const Affine *b, const Digits *before) {
    const Digits own = factor_difference(&b->x, &a->x, 1);
    *divisor = own;
    *prefix = digits(product(&own, before));
}

// slope = (2 yb - 2 ya) / (2 (xb - xa));  x' = slope^2 - xa - xb;  2 y' = slope 2 (xa - x') - 2 ya

NOINLINE void tree_slope(Digits *slope, const Affine *a, const Affine *b, const Digits *inverse) {
    const Digits y_difference = digits(add_p(subtract(sum_of(&b->y2), sum_of(&a->y2)), 3));  // 0 ... 6
    *slope = digits(product(&y_difference, inverse));                                        // <= 1.6
}

/// x' in place of xa, and 2 (xa - x').
NOINLINE void tree_x(Digits *xa, Digits *x_difference, const Digits *slope, const Digits *xb) {
    const Digits x = clean_digits(add_p(subtract(subtract(square(slope), sum_of(xa)), sum_of(xb)), 3));
    *x_difference = factor_difference(xa, &x, 1);
    *xa = x;
}

NOINLINE void tree_y(Digits *y2, const Digits *slope, const Digits *x_difference) {
    *y2 = clean_digits(add_p(subtract(product(slope, x_difference), sum_of(y2)), 2));
}

/// a = a + b, of the inverse of their divisor; clean.
INLINE void tree_add(Affine *a, const Affine *b, const Digits *inverse) {
    Digits slope, x_difference;
    tree_slope(&slope, a, b, inverse);
    tree_x(&a->x, &x_difference, &slope, &b->x);
    tree_y(&a->y2, &slope, &x_difference);
}

/// Replaces divisors that are zero in some lane by one there, and notes the lanes: two points of theirs have the
/// same x, and the formula does not hold.
NOINLINE void tree_repair(Digits *divisor, int count, int blocks, __mmask8 (*undecided)[GROUPS]) {
    const Digits one = constant(P_ONE);
    for (int k = 0; k < count; k++) {
        __mmask8 zero[GROUPS];
        is_zero(zero, &divisor[k]);
        EACH_GROUP(g) {
            undecided[k % blocks][g] |= zero[g];
            EACH_LIMB(i) divisor[k].limb[g][i] = _mm512_mask_mov_epi64(divisor[k].limb[g][i], zero[g], one.limb[g][i]);
        }
    }
}

INLINE void tree_prefixes(Tree *tree, int count) {
    tree->prefix[0] = tree->divisor[0];
    for (int k = 1; k < count; k++) multiply(&tree->prefix[k], &tree->prefix[k - 1], &tree->divisor[k]);
}

/// Sums every run of every block into its first point. Lanes that it cannot decide are added to `undecided`.
static void sum_runs(Tree *tree, int blocks, const Run *runs, int run_count, __mmask8 (*undecided)[GROUPS]) {
    const Digits one = constant(P_ONE);
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
            invert_digits(&inverse, &tree->prefix[total - 1]);
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
