// The kernel over a small curve: its shipped source, and functions that run its formulas by themselves.
#pragma once

#include "include/ToyCurve.h"

#include "toy_sources.h"
#include "../../Sources/CKernels/p256/verify.h"

// MARK: Residues

/// A residue of each lane, which stand `stride` bytes apart, in Montgomery form.
static Digits load_residues(const uint32_t *first, size_t stride) {
    Digits r;
    memset(&r, 0, sizeof r);
    for (int k = 0; k < BLOCK; k++)
        r.limb[k / LANES][0].lane[k % LANES] =
            *(const uint32_t *)(const void *)((const char *)first + stride * (size_t)k);
    const Digits radix = constant(P_SQUARED_RADIX);
    multiply(&r, &r, &radix);
    return r;
}

/// The reverse.
static void store_residues(uint32_t *first, size_t stride, const Digits *a) {
    static const uint64_t one[LIMBS] = {1};
    const Digits unit = constant(one);
    Digits r;
    multiply(&r, a, &unit);
    canonical(&r, &r);
    for (int k = 0; k < BLOCK; k++)
        *(uint32_t *)(void *)((char *)first + stride * (size_t)k) = (uint32_t)r.limb[k / LANES][0].lane[k % LANES];
}

static Affine load_affine(const rg_toy_affine *first, size_t stride) {
    return (Affine){load_residues(&first->x, stride), load_residues(&first->y2, stride)};
}

static Point load_point(const rg_toy_jacobian *first) {
    const Digits x = load_residues(&first->x, sizeof *first), v = load_residues(&first->v, sizeof *first);
    Point p;
    p.x = add_p(sum_of(&x), 3);
    p.x_digits = digits(p.x);
    p.v = sum_of(&v);
    p.v_digits = v;
    p.z = load_residues(&first->z, sizeof *first);
    return p;
}

static void store_jacobian(rg_toy_jacobian *first, size_t stride, const Digits *x, const Digits *v, const Digits *z) {
    store_residues(&first->x, stride, x);
    store_residues(&first->v, stride, v);
    store_residues(&first->z, stride, z);
}

static void store_point(rg_toy_jacobian *first, const Point *p) {
    const Digits x = digits(p->x), v = digits(p->v);
    store_jacobian(first, sizeof *first, &x, &v, &p->z);
}

// MARK: Formulas

static void run_add(rg_toy_jacobian *point, const rg_toy_affine *addend, const uint8_t *is_negative, size_t count) {
    for (size_t first = 0; first < count; first += BLOCK) {
        Point p = load_point(point + first);
        const Affine a = load_affine(addend + first, sizeof *addend);
        lane_mask negative[GROUPS] = {0};
        for (int k = 0; k < BLOCK; k++)
            if (is_negative[first + (size_t)k]) negative[k / LANES] |= (lane_mask)(1 << k % LANES);
        add_affine(&p, &a, negative);
        store_point(point + first, &p);
    }
}

static void run_twice(rg_toy_jacobian *point, size_t count) {
    for (size_t first = 0; first < count; first += BLOCK) {
        Point p = load_point(point + first);
        double_point(&p);
        store_point(point + first, &p);
    }
}

static void run_chain(rg_toy_jacobian *multiple, const rg_toy_affine *point, size_t length, size_t count) {
    const size_t stride = length * sizeof *multiple;
    for (size_t first = 0; first < count; first += BLOCK) {
        const Affine p = load_affine(point + first, sizeof *point);
        Chain chain;
        begin_chain(&chain, &p);
        for (size_t k = 0; k < length; k++) {
            const int row = (int)(k % CHAIN);
            if (k > 0) extend_chain(&chain, (row + CHAIN - 1) % CHAIN, row);
            store_jacobian(multiple + first * length + k, stride, &chain.x[row], &chain.v[row], &chain.z);
        }
    }
}

static void run_sum(rg_toy_affine *leaf, size_t points, size_t count, uint8_t *is_undecided) {
    static Tree tree;
    const Run run = {0, (int)points};
    const size_t stride = points * sizeof *leaf;
    for (size_t first = 0; first < count; first += TREE_CHECKS) {
        const int blocks = count - first < TREE_CHECKS ? (int)((count - first) / BLOCK) : TREE_BLOCKS;
        lane_mask undecided[TREE_BLOCKS][GROUPS];
        memset(undecided, 0, sizeof undecided);
        for (int b = 0; b < blocks; b++)
            for (size_t k = 0; k < points; k++)
                tree.leaves[b].point[k] = load_affine(leaf + (first + (size_t)(b * BLOCK)) * points + k, stride);
        sum_runs(&tree, blocks, &run, 1, undecided);
        for (int b = 0; b < blocks; b++) {
            rg_toy_affine *sum = leaf + (first + (size_t)(b * BLOCK)) * points;
            store_residues(&sum->x, stride, &tree.leaves[b].point[0].x);
            store_residues(&sum->y2, stride, &tree.leaves[b].point[0].y2);
            for (int k = 0; k < BLOCK; k++)
                is_undecided[first + (size_t)(b * BLOCK + k)] = undecided[b][k / LANES] >> k % LANES & 1;
        }
    }
}

// MARK: The curve

#define LIMBS_OF(name) \
    { #name, 52, sizeof name / sizeof name[0], name }
#define WORDS_OF(name) \
    { #name, 64, sizeof name / sizeof name[0], name }
#define LIMB_OF(name) \
    { #name, 52, 1, &name }

static const rg_p256_constant constants[] = {
    LIMBS_OF(P_LIMBS),         WORDS_OF(P_WORDS),       LIMBS_OF(P_ONE),   LIMBS_OF(P_THREE),
    LIMBS_OF(P_SQUARED_RADIX), LIMBS_OF(P_CUBED_RADIX), LIMBS_OF(CURVE_B), LIMBS_OF(GENERATOR_X),
    LIMBS_OF(GENERATOR_Y),     LIMBS_OF(N_LIMBS),       WORDS_OF(N_WORDS), LIMBS_OF(N_SQUARED_RADIX),
    LIMBS_OF(P_MINUS_N),       LIMBS_OF(N_CUBED_RADIX), LIMB_OF(P_FACTOR), LIMB_OF(N_FACTOR),
    LIMB_OF(P_RADIX_INVERSE),
};

#define SHAPE_OF(shape) \
    { (shape).width, (shape).digits, (shape).columns }
#define CURVE(name)                                                                                                   \
    {                                                                                                                 \
        name, constants, sizeof constants / sizeof constants[0], SCALAR_BITS, SHAPE_OF(NEW_KEY), SHAPE_OF(KNOWN_KEY), \
            SHAPE_OF(GENERATOR), (TREE_BLOCKS_MIN - 1) * BLOCK + 1, TREE_CHECKS, FUNCTIONS, run_add, run_twice,       \
            run_chain, run_sum                                                                                        \
    }
