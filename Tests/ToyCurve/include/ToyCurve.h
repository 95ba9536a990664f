// The P-256 kernel's own source over small curves, so that the tests can run it on all points and all scalars.
//
// A curve's functions run the shipped formulas and the shipped verification. The group knows all sums by plain affine
// arithmetic, and shares no code with the kernel. The runs compare the two.
#pragma once

#include "CKernels.h"
#include "KernelInternals.h"

/// A point (X / Z^2, V / 2 Z^3), by residues modulo p: plain numbers, not in Montgomery form. Where Z is 0, the others
/// may be anything.
typedef struct {
    uint32_t x, v, z;
} rg_toy_jacobian;

/// An affine point (x, y2 / 2), by residues.
typedef struct {
    uint32_t x, y2;
} rg_toy_affine;

/// Digits of scalars, as in p256/verify.h.
typedef struct {
    int width, digits, columns;
} rg_toy_shape;

/// The kernel over one curve.
typedef struct {
    const char *name;
    const rg_p256_constant *constant;
    size_t constants;
    int scalar_bits;
    rg_toy_shape new_key, known_key, generator;
    /// Checks from which on a batch is summed by trees, and checks whose trees are summed together.
    size_t tree_min, tree_checks;
    rg_p256_functions functions;

    // The formulas by themselves, for `count` lanes, a multiple of `functions.width`. The operands of all lanes pass
    // through one call.

    /// point[i] + or - addend[i], with V flipped.
    void (*add)(rg_toy_jacobian *point, const rg_toy_affine *addend, const uint8_t *is_negative, size_t count);
    /// 2 point[i], with V flipped.
    void (*twice)(rg_toy_jacobian *point, size_t count);
    /// multiple[length i + k] is point[i] times 2 k + 1, as `begin_chain` and `extend_chain` make it, which go on from
    /// the last of a chain as tables of more rows do.
    void (*chain)(rg_toy_jacobian *multiple, const rg_toy_affine *point, size_t length, size_t count);
    /// Sums leaf[points i] to leaf[points i + points - 1] into the first of them, by a tree over all lanes.
    void (*sum)(rg_toy_affine *leaf, size_t points, size_t count, uint8_t *is_undecided);
} rg_toy_curve;

/// The kernel modulo 43 with 37 points, in one group of eight lanes, or modulo 1283 with 1223 points, in two groups.
/// (The kernel's square root is one modulo 1283, too, but not modulo 43.) 0 for other primes.
const rg_toy_curve *rg_toy_curve_modulo(uint32_t p);
/// Kernels modulo 43 that are broken on purpose; 0 behind the last.
const rg_toy_curve *rg_toy_mutant(size_t number);

/// The group of y^2 = x^3 - 3 x + b modulo p, point by point.
typedef struct rg_toy_group rg_toy_group;

/// Finds all points by their equation, and numbers them by affine additions: number k is k times the first point, and
/// number 0 is infinity. 0 when the order is no prime below p, or when the sum of two points a and b is not always
/// point a + b modulo the order.
rg_toy_group *rg_toy_group_create(uint32_t p, uint32_t b);
void rg_toy_group_free(rg_toy_group *group);
uint32_t rg_toy_group_order(const rg_toy_group *group);

/// What a formula's run has counted: lanes, those with an exceptional case, and those whose result is not the oracle's.
typedef struct {
    size_t lanes, exceptional, wrong;
} rg_toy_formula_tally;

/// Adds every point to every point, with both signs, where it is exceptional exactly for equal x; with every
/// `step`th Z. And to every `step`th X and V with Z = 0, where Z has to stay 0.
rg_toy_formula_tally rg_toy_add_all(const rg_toy_curve *curve, const rg_toy_group *group, uint32_t step);
/// Doubles the same points. Only those with Z = 0 are exceptional.
rg_toy_formula_tally rg_toy_double_all(const rg_toy_curve *curve, const rg_toy_group *group, uint32_t step);
/// Makes `length` odd multiples of every point. The first exceptional one is infinity, and Z has to be 0 from there on.
rg_toy_formula_tally rg_toy_chain_all(const rg_toy_curve *curve, const rg_toy_group *group, size_t length);
/// Sums all tuples of that many points, from 2 to 4, by trees. A tuple is exceptional when two points have the same x
/// that a tree adds.
rg_toy_formula_tally rg_toy_sum_all(const rg_toy_curve *curve, const rg_toy_group *group, size_t points);

/// What a run has counted.
typedef struct {
    size_t checks, valid, invalid, bad_key, undecided;
    /// Lanes with an exceptional addition: the first of them adds a point to itself, or to its opposite; and whether it
    /// happens within a tree.
    size_t equal, opposite, within_tree;
    /// Valid signatures among the undecided lanes.
    size_t undecided_valid;
    /// Outcomes that are not the oracle's, and what the first of them should have been, or -1.
    size_t wrong;
    int expected, outcome;
    /// The first wrong check: its key's number, r, s, digest.
    uint32_t key, r, s, digest;
} rg_toy_tally;

typedef struct {
    /// Verified by tables of known keys.
    int is_known;
    /// Checks in a batch.
    size_t batch;
    /// The checks pass in this order: number i * step modulo their count, from 1 on and coprime to the count.
    uint64_t step;
} rg_toy_mode;

/// Verifies with every key, every r and s from 0 to n, and every digest from 0 to n - 1.
rg_toy_tally rg_toy_verify_all(const rg_toy_curve *curve, const rg_toy_group *group, rg_toy_mode mode);
/// Verifies with every key, every u1 and every u2 but 0, and r = x of u1 G + u2 Q modulo n.
rg_toy_tally rg_toy_verify_sums(const rg_toy_curve *curve, const rg_toy_group *group, rg_toy_mode mode);
/// Verifies `count` signatures with random keys and scalars, of which every second has the right r.
rg_toy_tally rg_toy_verify_some(
    const rg_toy_curve *curve, const rg_toy_group *group, rg_toy_mode mode, size_t count, uint64_t seed);
/// In batches of mode.batch: each failing check in every place among good ones, and a good check in every place among
/// failing ones. Failing: undecided for an exceptional addition, r or s out of range, and for new keys, no point.
rg_toy_tally rg_toy_verify_places(const rg_toy_curve *curve, const rg_toy_group *group, rg_toy_mode mode);
/// Verifies with every pair of coordinates below 2^bits as a key, or, when compressed, with every x; one of two checks
/// has such a key, and the others are valid.
rg_toy_tally rg_toy_verify_keys(
    const rg_toy_curve *curve, const rg_toy_group *group, size_t batch, int bits, int is_compressed);
