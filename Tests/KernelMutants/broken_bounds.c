// The P-256 kernel with checks, and one change for every bound that it checks. A variable says which change is made, so
// that one compilation holds all of them: each macro below stands between two of the kernel's headers, takes the place
// of a function in the second one, and computes the same as long as its bound is not the broken one.
#include "include/KernelMutants.h"

#ifndef KERNEL_CHECKS
#define KERNEL_CHECKS
#endif
#include "begin.h"
#include "broken_bounds.h"

// MARK: Which bound is broken

#define NUMBER(name, message) bound_##name,
#define MESSAGE(name, message) message,
enum { BOUNDS(NUMBER) BOUND_COUNT };
static const char *const messages[] = {BOUNDS(MESSAGE)};

/// The number of the bound that is broken; BOUND_COUNT for none.
static size_t broken_bound = BOUND_COUNT;

#define IS_BROKEN(name) (broken_bound == bound_##name)
/// The amount when the bound is the broken one, else 0.
#define WHEN(name, amount) (IS_BROKEN(name) ? (amount) : 0)

/// Whether the source spells a macro's argument so: tells the uses of one function in a header apart.
static int is(const char *argument, const char *spelling) { return strcmp(argument, spelling) == 0; }

// MARK: Lanes and moduli

#include "../../Sources/CKernels/p256/limbs.h"

/// The limbs with `amount` added to limb i.
INLINE lanes *changed_limbs(const lanes limb[LIMBS], int i, uint64_t amount) {
    static lanes changed[LIMBS];
    memcpy(changed, limb, sizeof changed);
    changed[i] = plus(changed[i], broadcast(amount));
    return changed;
}

#include "../../Sources/CKernels/p256/division_steps.h"

/// Makes d and e grow too much.
static int64_t raise_coefficients(Transition *t) {
    if (IS_BROKEN(inverse_coefficients)) t->ff = t->fg = t->gf = t->gg = INT64_MAX >> 1;
    return 0;
}
// The modulus stands for the value.
#define digits62_of_words(word) digits62_of_words(is(#word, "value") && IS_BROKEN(inverse_value) ? modulus : (word))
#define divide_62_steps(eta, f, g, t) (divide_62_steps(eta, f, g, t) + raise_coefficients(t))
#include "../../Sources/CKernels/p256/inverse.h"
#undef digits62_of_words
#undef divide_62_steps

// The accumulators of a product are not cleared.
#define accumulator(k, halves) (IS_BROKEN(montgomery_product) ? broadcast(1ull << LIMB_BITS) : accumulator(k, halves))
#include "../../Sources/CKernels/p256/modulus.h"
#undef accumulator

// MARK: The field

// The accumulators of a product are not cleared.
#define accumulator(k, halves)                              \
    (IS_BROKEN(product_limbs)       ? broadcast(1ull << 58) \
         : IS_BROKEN(product_value) ? broadcast(1ull << 50) \
                                    : accumulator(k, halves))
// The weak reduction does not clear the bits that it folds.
#define bit_and(a, b) (IS_BROKEN(weak_reduction_to) ? (a) : bit_and(a, b))
// Digits are not masked.
#define low_bits(limb) (IS_BROKEN(clean_limbs) && is(#limb, "r.limb[g][i]") ? (limb) : low_bits(limb))
// The last subtraction of p is left out.
#define subtract_once(limb, bound) (IS_BROKEN(canonical_below_p) ? (void)0 : subtract_once(limb, bound))
#include "../../Sources/CKernels/p256/field.h"
#undef accumulator
#undef bit_and
#undef low_bits
#undef subtract_once

/// The sum and k p.
INLINE Sum raised(Sum a, int k) { return k ? add_p(a, k) : a; }

/// The digits and k p, clean.
INLINE Digits raised_digits(Digits a, int k) {
    if (k == 0) return a;
    EACH_LIMB(i) a.limb[0][i] = low_bits(a.limb[0][i]);
    a = digits(add_p(sum_of(&a), k));
    UNROLL(i, 0, LIMBS - 1) a.limb[0][i] = low_bits(a.limb[0][i]);
    return a;
}

/// Adds k p where the digits stand.
INLINE void raise_digits(Digits *a, int k) { *a = raised_digits(*a, k); }

/// 2^259 - 1, about 8 p.
INLINE const Digits *eight_p(void) {
    static Digits ones;
    EACH_LIMB(i) ones.limb[0][i] = broadcast(i < LIMBS - 1 ? LIMB_MASK : LIMB_MASK >> 1);
    return &ones;
}

/// Every limb times 2^10.
INLINE Sum shifted(Sum a) {
    EACH_LIMB(i) a.limb[0][i] = shift_left(a.limb[0][i], 10);
    return a;
}

/// Zero, with a top limb of -1.
INLINE Sum borrowed_zero(void) {
    Sum a;
    memset(&a, 0, sizeof a);
    a.limb[0][3] = broadcast(1ull << LIMB_BITS);
    a.limb[0][4] = broadcast(UINT64_MAX);
    return a;
}

/// The digits with a bit above limb 0.
INLINE const Digits *unclean(const Digits *a) {
    static Digits changed;
    memcpy(&changed, changed_limbs(a->limb[0], 0, 1ull << LIMB_BITS), sizeof changed);
    return &changed;
}

// MARK: Points

// An affine point becomes a point with offsets that are 2 p off.
#define add_p(a, k) add_p(a, k - WHEN(point_x, 2))
#define sum_of(a) raised(sum_of(a), WHEN(point_v, 2))
#define constant(limb) raised_digits(constant(limb), WHEN(point_z, 2))
#define words_of_limbs(word, limb)                                               \
    words_of_limbs(                                                              \
        word,                                                                    \
        IS_BROKEN(words_clean)       ? changed_limbs(limb, 0, 1ull << LIMB_BITS) \
            : IS_BROKEN(words_value) ? changed_limbs(limb, 4, 1ull << 48)        \
                                     : (limb))
#define canonical(r, a) (canonical(r, a), raise_digits(r, is(#r, "&residue") ? WHEN(inversion, 3) : 0))
#include "../../Sources/CKernels/p256/point.h"
#undef add_p
#undef sum_of
#undef constant
#undef words_of_limbs
#undef canonical

// Each formula of a doubling has one value that is some p off, or lacks a reduction.
#define square(a) raised(square(a), is(#a, "z") ? WHEN(doubling_zz, 1) : WHEN(doubling_squared, 1))
#define subtract(a, b) raised(subtract(a, b), difference_of_doubling(#a, #b))
static int difference_of_doubling(const char *a, const char *b) {
    return is(b, "zz") ? WHEN(doubling_minus, -4) : is(a, "*x") ? WHEN(doubling_difference, -3) : 0;
}
#define add(a, b) raised(add(IS_BROKEN(sum_limbs) ? shifted(a) : (a), b), sum_of_doubling(#a, #b))
static int sum_of_doubling(const char *a, const char *b) {
    return is(b, "zz") ? WHEN(doubling_plus, 6) : is(a, "x_difference") ? WHEN(doubling_twice, 12) : 0;
}
#define digits(a) digits(raised(a, is(#a, "minus_zz") ? WHEN(digits_value, -16) : 0))
#define product(a, b) raised(product(a, b), WHEN(doubling_factors, 8))
#define reduce_weakly(a)       \
    (IS_BROKEN(doubling_alpha) \
         ? (a)                 \
         : reduce_weakly(IS_BROKEN(weak_reduction_top) ? borrowed_zero() : raised(a, WHEN(weak_reduction_of, -30))))
#define multiply_sum(r, a, b) (multiply_sum(r, a, b), *(r) = raised(*(r), WHEN(doubling_s, 2)))
#define add_p(a, k) add_p(a, k - WHEN(doubling_x, 3))
#define square_digits(r, a) (square_digits(r, a), raise_digits(r, WHEN(doubling_g, 2)))
#define square_plus_product(a, b, c) raised(square_plus_product(a, b, c), WHEN(doubling_v, 2))
#define multiply(r, a, b) (multiply(r, a, b), raise_digits(r, WHEN(doubling_z, 1)))
#include "../../Sources/CKernels/p256/doubling.h"
#undef square
#undef subtract
#undef add
#undef digits
#undef product
#undef reduce_weakly
#undef multiply_sum
#undef add_p
#undef square_digits
#undef square_plus_product
#undef multiply

// The same for an addition.
#define subtract(a, b) raised(subtract(a, b), difference_of_addition(#a, #b))
static int difference_of_addition(const char *a, const char *b) {
    if (is(a, "own")) return WHEN(addition_r, 5);
    if (!is(a, "*x")) return 0;
    return is(b, "*w") ? WHEN(addition_x_difference, -4) : WHEN(addition_difference, -4);
}
#define reduce_weakly(a) (is(#a, "difference") ? IS_BROKEN(addition_h) : IS_BROKEN(addition_v)) ? (a) : reduce_weakly(a)
#define add(a, b) raised(add(a, b), is(#a, "r") ? WHEN(addition_twice_h, 2) : 0)
#define product(a, b) raised(product(a, b), product_of_addition(#a))
static int product_of_addition(const char *a) {
    return is(a, "y2") ? WHEN(addition_other, 1) : is(a, "a") ? WHEN(addition_j, 1) : 0;
}
#define add_p(a, k) add_p(a, k - (is(#a, "*v") ? WHEN(addition_own, 2) : WHEN(addition_x, 4)))
#define square(a) raised(square(a), WHEN(addition_squared, 2))
#define multiply_sum(r, a, b) (multiply_sum(r, a, b), *(r) = raised(*(r), WHEN(addition_w, 2)))
#define product_plus_product(a, b, c, d) raised(product_plus_product(a, b, c, d), WHEN(addition_half, 4))
#define square_digits(r, a) \
    (square_digits(r, a), raise_digits(r, is(#r, "&zz") ? WHEN(addition_zz, 1) : WHEN(addition_i, 1)))
#define multiply(r, a, b) \
    (multiply(r, a, b), raise_digits(r, is(#r, "&zzz") ? WHEN(addition_zzz, 1) : WHEN(addition_z, 1)))
#include "../../Sources/CKernels/p256/addition.h"
#undef subtract
#undef reduce_weakly
#undef add
#undef product
#undef add_p
#undef square
#undef multiply_sum
#undef product_plus_product
#undef square_digits
#undef multiply

// MARK: Chains and rows

#define add_p(a, k) add_p(a, k - offset_of_chain(#a))
/// What is missing of the offset in the formula that the source spells so.
static int offset_of_chain(const char *sum) {
    return is(sum, "subtract(sum_of(a), sum_of(b))")                  ? WHEN(chain_difference, 2)
        : is(sum, "subtract(square(&p->x), sum_of(&one))")            ? WHEN(chain_alpha, 2)
        : is(sum, "subtract(subtract(square(&alpha), s_sum), s_sum)") ? WHEN(chain_step, 3)
                                                                      : WHEN(chain_x, 3);
}
#define multiply(r, a, b) (multiply(r, a, b), raise_digits(r, WHEN(chain_z, 1)))
#include "../../Sources/CKernels/p256/chain.h"
#undef add_p
#undef multiply

#define coordinate_of_words(a, g, word) changed_coordinate(a, g, word, is(#a, "&a->x"))
/// Rows are read with a bit above limb 0 of x, or half a p too large.
INLINE void changed_coordinate(Digits *a, int g, const lanes word[4], int is_x) {
    (coordinate_of_words)(a, g, word);
    lanes *limb = a->limb[g];
    limb[0] = plus(limb[0], broadcast(is_x ? WHEN(affine_clean, 1ull << LIMB_BITS) : 0));
    limb[4] = plus(limb[4], broadcast(WHEN(affine_value, 1ull << 47)));
}
#define multiply_below_256_bits(r, a, b) \
    (IS_BROKEN(product_256_bits) ? multiply_below_256_bits(r, eight_p(), eight_p()) : multiply_below_256_bits(r, a, b))
#define multiply(r, a, b) (multiply(r, a, b), raise_digits(r, is(#r, "inverse") ? WHEN(rows_inverse, 1) : 0))
#include "../../Sources/CKernels/p256/rows.h"
#undef coordinate_of_words
#undef multiply_below_256_bits
#undef multiply

// MARK: Trees

#define factor_difference(a, b, twice) factor_difference(a, b, (twice) - (is(#a, "&b->x") ? WHEN(tree_divisor, 1) : 0))
#define product(a, b) raised(product(a, b), product_of_tree(#a))
static int product_of_tree(const char *a) {
    return is(a, "&own") ? WHEN(tree_prefix, 1) : is(a, "&factor") ? WHEN(tree_slope, 1) : 0;
}
#define multiply(r, a, b) (multiply(r, a, b), raise_digits(r, is(#r, "&own") ? WHEN(tree_inverse, 1) : 0))
#define add_p(a, k) add_p(a, k - offset_of_tree(#a))
static int offset_of_tree(const char *sum) {
    return is(sum, "subtract(sum_of_signed(&b->y2), sum_of_signed(&a->y2))")   ? WHEN(tree_y_difference, 3)
        : is(sum, "subtract(subtract(square(slope), sum_of(xa)), sum_of(xb))") ? WHEN(tree_x, 3)
                                                                               : WHEN(tree_y, 2);
}
// The repair leaves the divisors as they are.
#define choose_limbs(r, mask, a, b) (IS_BROKEN(tree_repair) ? (void)0 : choose_limbs(r, mask, a, b))
#include "../../Sources/CKernels/p256/tree.h"
#undef factor_difference
#undef product
#undef multiply
#undef add_p
#undef choose_limbs

// MARK: Scalars

// An even scalar stays even.
#define choose_limbs(r, mask, a, b) (IS_BROKEN(scalar_odd) ? (void)0 : choose_limbs(r, mask, a, b))
// A scalar is not reduced.
#define subtract_once(limb, bound) (IS_BROKEN(scalar_range) ? (void)0 : subtract_once(limb, bound))
// The bits of a row are not masked.
#define bit_and(a, b) (IS_BROKEN(digit_row) && is(#b, "broadcast((1ull << (width - 1)) - 1)") ? (a) : bit_and(a, b))
#include "../../Sources/CKernels/p256/scalar.h"
#undef choose_limbs
#undef subtract_once
#undef bit_and

// MARK: Verifying

/// Calls `sum_runs` with runs or blocks that it does not take.
static void sum_broken_runs(Tree *tree, int blocks, const Run *runs, int run_count, lane_mask (*undecided)[GROUPS]) {
    static const Run overlapping[] = {{0, 20}, {19, 20}}, beyond[] = {{TREE_POINTS - 1, 2}};
    if (IS_BROKEN(tree_order)) sum_runs(tree, blocks, overlapping, 2, undecided);
    if (IS_BROKEN(tree_points)) sum_runs(tree, blocks, beyond, 1, undecided);
    sum_runs(tree, IS_BROKEN(tree_blocks) ? TREE_BLOCKS + 1 : blocks, runs, run_count, undecided);
}
#define sum_runs sum_broken_runs
/// A residue of zero in the place of the true one.
#define residue_of_digits(limb, a) \
    (residue_of_digits(limb, a), (void)(IS_BROKEN(no_zero_z) ? memset(limb, 0, sizeof *(limb)) : 0))
#define sum_of(a) sum_of(IS_BROKEN(sum_of_digits) ? unclean(a) : (a))
#define is_below(limb, bound) \
    is_below(IS_BROKEN(comparison) ? changed_limbs(limb, 0, 1ull << LIMB_BITS) : (limb), bound)
#define is_nonzero(limb) (IS_BROKEN(no_zero_s) && is(#limb, "s") ? (lane_mask)0xff : is_nonzero(limb))
#define make_odd(u)                                                            \
    make_odd(                                                                  \
        IS_BROKEN(subtraction)        ? changed_limbs(u, 0, 1ull << LIMB_BITS) \
            : IS_BROKEN(scalar_value) ? changed_limbs(u, 4, 1ull << 50)        \
                                      : (u))
// n is added to every r.
#define add_order(sum, r, small) add_order(sum, r, IS_BROKEN(second_x) ? 0xff : (small))
#define odd_digit(row, u, place, width, count) odd_digit(row, u, place, width, count - WHEN(digit_count, 2))
#define square(a) raised(square(a), is(#a, "x") ? WHEN(curve_equation, 2) : WHEN(key_difference, 2))
#define add_p(a, k) add_p(a, k - offset_of_verify(#a))
static int offset_of_verify(const char *sum) {
    return is(sum, "subtract(sum_of(&zero), sum_of(&leaf->y2))") ? WHEN(tree_leaf, 2)
        : is(sum, "subtract(sum->x, product(&c, zz))")           ? WHEN(outcome_difference, 6)
                                                                 : 0;
}
#include "../../Sources/CKernels/p256/verify.h"

// MARK: A run through the kernel

/// The generator, as X9.63 writes it.
static const uint8_t generator_point[65] = {
    0x04, 0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2,
    0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96, 0x4f,
    0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16, 0x2b, 0xce,
    0x33, 0x57, 0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5};

/// Numbers without a pattern, the same in every run (xorshift64*).
static void fill_with_numbers(uint8_t *bytes, size_t count, uint64_t *state) {
    for (size_t i = 0; i < count; i++) {
        *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
        bytes[i] = (uint8_t)(*state * 0x2545f4914f6cdd1dull >> 56);
    }
}

enum { CHECKS = RG_P256_BATCH_MAX + 1 };

/// Signatures without a meaning. About half of the keys are on the curve; the kernel replaces the others.
static void make_checks(rg_p256_check *checks, uint8_t (*keys)[33]) {
    uint64_t state = 13;
    for (int i = 0; i < CHECKS; i++) {
        fill_with_numbers(keys[i], sizeof keys[i], &state);
        keys[i][0] = 2 + (keys[i][0] & 1);
        checks[i].point = i % 16 == 0 ? generator_point : keys[i];
        fill_with_numbers(checks[i].r, 32, &state);
        fill_with_numbers(checks[i].s, 32, &state);
        fill_with_numbers(checks[i].digest, 32, &state);
    }
    memset(checks[3].s, 0, 32);
    memset(checks[5].digest, 0, 32);
    memset(checks[7].r, 0, 20);
}

/// New keys and known keys, with trees and without. Every row of the generator's table is some row of a key's table:
/// that changes no bound, is quick to make, and lets a tree meet equal points.
void rg_run_with_broken_bound(size_t bound) {
    static rg_p256_check checks[CHECKS];
    static uint8_t keys[CHECKS][33], outcomes[CHECKS];
    static _Alignas(RG_P256_ALIGNMENT) uint64_t known[KNOWN_KEY_BYTES / 8];
    static _Alignas(RG_P256_ALIGNMENT) uint64_t generator[RG_P256_GENERATOR_BYTES / 8];
    static _Alignas(RG_P256_ALIGNMENT) Workspace workspace;
    static const int few = 2 * BLOCK;
    broken_bound = bound;
    if (IS_BROKEN(value_of_words)) rg_run_with_broken_word();
    make_checks(checks, keys);
    const uint8_t *point = generator_point;
    uint64_t *table = known;
    build_known(&point, &table, 1, &workspace);
    (void)build_generator;  // builds its table as build_known does
    for (size_t offset = 0; offset < sizeof generator; offset += sizeof known) {
        const size_t rest = sizeof generator - offset;
        memcpy((uint8_t *)generator + offset, known, rest < sizeof known ? rest : sizeof known);
    }
    const uint64_t *tables[CHECKS];
    for (int i = 0; i < CHECKS; i++) tables[i] = known;
    verify(checks, RG_P256_BATCH_MAX + WHEN(batch_count, 1), generator, &workspace, outcomes);
    verify(checks, few, generator, &workspace, outcomes);
    verify_known(checks, tables, RG_P256_BATCH_MAX, generator, &workspace, outcomes);
    verify_known(checks, tables, few, generator, &workspace, outcomes);
}

const char *const *const rg_bounds = messages;
const size_t rg_bound_count = BOUND_COUNT;
