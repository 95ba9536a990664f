// Verifying batches: from checks to outcomes.
//
//     scalars -> keys -> tables -> sums u1 G + u2 Q -> outcomes
//
// Valid means that the sum's x is r modulo n (FIPS 186-5, 6.4.2). A lane comes out undecided when a formula does not
// hold in it (`decide` says who can bring that about). All data are public, so nothing here is constant-time.
#pragma once

#include "../include/p256.h"
#include "group.h"
#include "scalar.h"
#include "tree.h"

#ifndef CHECKS_TOGETHER
/// Checks that are verified together, at most. More share an inversion, but need more of the cache.
#define CHECKS_TOGETHER RG_P256_BATCH_MAX
#endif

_Static_assert(CHECKS_TOGETHER % TREE_CHECKS == 0 && RG_P256_BATCH_MAX % CHECKS_TOGETHER == 0, "whole trees");

enum {
    BLOCKS_MAX = CHECKS_TOGETHER / BLOCK,
    /// Blocks from which on a tree is faster than single additions.
    TREE_BLOCKS_MIN = BLOCK >= 8 ? 3 : 24 / BLOCK,
};

/// How a scalar's digits are distributed over a table: digit s * columns + c takes a row of subtable s, which holds odd
/// multiples of 2^(width * columns * s) times the point, and is doubled width times for each step of c.
typedef struct {
    int width, digits, columns;
} Shape;

#ifdef SHAPES_FILE
// The shapes for a test's small curve.
#include SHAPES_FILE
#else
/// A key seen for the first time: one subtable of 16 points, 250 doublings.
static const Shape NEW_KEY = {5, 52, 52};
/// A known key (known_keys.h).
static const Shape KNOWN_KEY = {KNOWN_KEY_WIDTH, KNOWN_KEY_DIGITS, KNOWN_KEY_COLUMNS};
/// The generator: 20 subtables of 4,096 points, no doublings.
static const Shape GENERATOR = {13, GENERATOR_DIGITS, 1};
_Static_assert(5 * 52 >= 256 && 13 * GENERATOR_DIGITS >= 256, "digits for a scalar");
#endif

/// No lane.
static const lane_mask NONE[GROUPS];

/// One block of checks while it is verified.
typedef struct {
    /// Scalars made odd, clean.
    lanes u1[GROUPS][LIMBS], u2[GROUPS][LIMBS];
    /// Lanes in which u1 and u2 took different signs.
    lane_mask opposite_signs[GROUPS];
    /// r as it came.
    lanes r[GROUPS][LIMBS];
    /// Lanes that hold a check whose r and s are from 1 to n - 1.
    lane_mask in_range[GROUPS];
    /// Lanes whose key is not a point of the curve.
    lane_mask bad_key[GROUPS];
    Affine key;
    Chain chain;
    /// A new key's rows, lane after lane.
    uint64_t rows[BLOCK][CHAIN * ROW_WORDS] __attribute__((aligned(64)));
} Block;

typedef struct {
    Block block[BLOCKS_MAX];
    lanes inverse[BLOCKS_MAX * GROUPS][LIMBS], scratch[BLOCKS_MAX * GROUPS][LIMBS];
    Tree tree;
    /// The addresses of the generator's rows that are used next.
    uint64_t rows[TREE_BLOCKS * BLOCK * GENERATOR_DIGITS];
} Workspace;

INLINE int blocks_of(size_t count) { return (int)((count + BLOCK - 1) / BLOCK); }

/// The 32 big-endian bytes at every lane's address as clean limbs. Lanes whose address is 0 get zero.
INLINE void load_integers(lanes limb[LIMBS], const uint8_t *const bytes_of_lane[LANES]) {
    uint64_t words[4][LANES] __attribute__((aligned(64)));
    for (int lane = 0; lane < LANES; lane++)
        for (int w = 0; w < 4; w++) {
            uint64_t word = 0;
            if (bytes_of_lane[lane]) memcpy(&word, bytes_of_lane[lane] + 24 - 8 * w, 8);
            words[w][lane] = __builtin_bswap64(word);
        }
    lanes word[4];
    for (int w = 0; w < 4; w++) word[w] = load(words[w]);
    limbs_of_words(limb, word);
}

// MARK: Scalars

/// u1 = e / s and u2 = r / s for all blocks, with one inversion.
///
/// A single s = 0 modulo n would leave the inverses of all lanes undefined. So s is replaced by 1 in every lane whose r
/// or s is not from 1 to n - 1, which includes the lanes without a check. The outcome of such a lane is invalid
/// whatever its sum is: `decide` looks at `in_range` before it looks at the sum. In all other lanes u2 is not 0, since
/// n is a prime. u1 is 0 when the digest is 0 modulo n; `make_odd` says what happens then.
NOINLINE void compute_scalars(Workspace *w, const rg_p256_check *checks, size_t count) {
    const int blocks = blocks_of(count);
    lanes radix[LIMBS], one[LIMBS];
    EACH_LIMB(i) {
        radix[i] = broadcast(N_SQUARED_RADIX[i]);
        one[i] = broadcast(i == 0);
    }
    for (int b = 0; b < blocks; b++)
        for (int g = 0; g < GROUPS; g++) {
            const uint8_t *r_bytes[LANES], *s_bytes[LANES];
            for (int lane = 0; lane < LANES; lane++) {
                const size_t position = (size_t)(b * BLOCK + g * LANES + lane);
                r_bytes[lane] = position < count ? checks[position].r : 0;
                s_bytes[lane] = position < count ? checks[position].s : 0;
            }
            lanes s[LIMBS], *r = w->block[b].r[g];
            load_integers(r, r_bytes);
            load_integers(s, s_bytes);
            const lane_mask in_range = is_nonzero(r) & is_below(r, N_LIMBS) & is_nonzero(s) & is_below(s, N_LIMBS);
            w->block[b].in_range[g] = in_range;
            choose_limbs(s, in_range, s, one);
            montgomery(w->inverse[b * GROUPS + g], s, radix, &GROUP_ORDER);
        }
    const int is_inverted = invert_many(w->inverse, blocks * GROUPS, w->scratch, &GROUP_ORDER);
    kernel_check(is_inverted, "scalars: no s is zero");
    for (int b = 0; b < blocks; b++)
        for (int g = 0; g < GROUPS; g++) {
            Block *block = &w->block[b];
            const uint8_t *digest[LANES];
            for (int lane = 0; lane < LANES; lane++) {
                const size_t position = (size_t)(b * BLOCK + g * LANES + lane);
                digest[lane] = position < count ? checks[position].digest : 0;
            }
            lanes e[LIMBS];
            load_integers(e, digest);
            montgomery(block->u1[g], e, w->inverse[b * GROUPS + g], &GROUP_ORDER);
            montgomery(block->u2[g], block->r[g], w->inverse[b * GROUPS + g], &GROUP_ORDER);
            block->opposite_signs[g] = make_odd(block->u1[g]) ^ make_odd(block->u2[g]);
        }
}

// MARK: Keys

/// x^3 - 3 x + b, clean, of clean x below 1.1 p.
NOINLINE void curve_equation(Digits *r, const Digits *x) {
    check_coordinate(x);
    const Digits three = constant(P_THREE), b = constant(CURVE_B);
    const Sum sum = add_p(subtract(square(x), sum_of(&three)), 1);
    check_sum_range(&sum, 0.9, 2.1, "curve equation: x^2 - 3 + p from 0.9 p to 2.1 p");
    const Digits factor = digits(sum);
    *r = clean_digits(add(product(&factor, x), sum_of(&b)));
}

/// r = a^(2^times).
INLINE void square_repeatedly(Digits *r, const Digits *a, int times) {
    *r = *a;
    for (int k = 0; k < times; k++) square_digits(r, r);
}

/// A square root of a where there is one: a^((p + 1) / 4), (p + 1) / 4 = 2^254 - 2^222 + 2^190 + 2^94.
NOINLINE void square_root(Digits *root, const Digits *a) {
    // a^(2^k - 1) for k = 1, 2, 4, 8, 16, 32; then the exponent is ((2^32 - 1) 2^32 + 1) 2^96 + 1, times 2^94.
    Digits ones = *a, t;
    for (int k = 1; k < 32; k *= 2) {
        square_repeatedly(&t, &ones, k);
        multiply(&ones, &ones, &t);
    }
    square_repeatedly(&t, &ones, 32);
    multiply(&t, &t, a);
    square_repeatedly(&t, &t, 96);
    multiply(&t, &t, a);
    square_repeatedly(root, &t, 94);
}

/// y = the root of rhs with the parity that the key names, in the lanes whose key is compressed.
///
/// Where rhs is not a square, the root is not one either; then y^2 = rhs does not hold, and `load_keys` notes a bad
/// key. Where it is, the roots are y and p - y, of which one is odd, since p is odd. (y = 0 has no second root, but no
/// point of the curve has it.)
NOINLINE void choose_roots(
    Digits *y, const Digits *rhs, const lane_mask compressed[GROUPS], const lane_mask odd[GROUPS]) {
    const Digits zero = {0};
    Digits root;
    lane_mask is_odd[GROUPS];
    square_root(&root, rhs);
    canonical(&root, &root);
    odd_values(is_odd, &root);
    const Digits opposite = difference(&zero, &root, 0);
    EACH_GROUP(g) {
        lanes named[LIMBS];
        choose_limbs(named, is_odd[g] ^ odd[g], opposite.limb[g], root.limb[g]);
        choose_limbs(y->limb[g], compressed[g], named, y->limb[g]);
    }
}

/// Loads the keys of a block, notes the bad ones and puts the generator in their place, also in lanes without a check.
///
/// A key is a point of the curve when its coordinates are below p and y^2 = x^3 - 3 x + b. (The cofactor is 1, so that
/// it then lies in the group of order n; infinity has no such encoding.) A point off the curve is on another one, whose
/// order can have small factors: a Z of its chain could be 0, and that would leave the inverses of all lanes undefined.
/// So the generator takes its place, and `decide` says bad key whatever the sum is.
NOINLINE void load_keys(Block *block, const uint8_t *const points[BLOCK]) {
    const uint8_t *x_bytes[BLOCK], *y_bytes[BLOCK];
    lane_mask compressed[GROUPS] = {0}, odd[GROUPS] = {0}, present[GROUPS] = {0}, any = 0;
    for (int k = 0; k < BLOCK; k++) {
        const uint8_t *point = points[k];
        const lane_mask bit = (lane_mask)(1u << k % LANES);
        x_bytes[k] = point ? point + 1 : 0;
        y_bytes[k] = point && point[0] == 4 ? point + 33 : 0;
        if (!point) continue;
        present[k / LANES] |= bit;
        if (point[0] == 4) continue;
        compressed[k / LANES] |= bit;
        if (point[0] == 3) odd[k / LANES] |= bit;
        any = 1;
    }
    Digits x, y, rhs;
    lane_mask below[GROUPS], on_curve[GROUPS];
    for (int g = 0; g < GROUPS; g++) {
        load_integers(x.limb[g], x_bytes + g * LANES);
        load_integers(y.limb[g], y_bytes + g * LANES);
        below[g] = is_below(x.limb[g], P_LIMBS) & is_below(y.limb[g], P_LIMBS);
    }
    digits_of_integer(&x);
    digits_of_integer(&y);
    curve_equation(&rhs, &x);
    if (any) choose_roots(&y, &rhs, compressed, odd);
    const Sum difference = add_p(subtract(square(&y), sum_of(&rhs)), 3);
    check_sum_range(&difference, 1.9, 4.1, "key: y^2 - rhs + 3 p from 1.9 p to 4.1 p");
    const Digits yy = digits(difference);
    is_zero(on_curve, &yy);
    Sum doubled = sum_of(&y);
    Digits y2 = clean_digits(add(doubled, doubled));
    const Digits generator_x = constant(GENERATOR_X), generator_y = constant(GENERATOR_Y);
    doubled = sum_of(&generator_y);
    const Digits generator_y2 = clean_digits(add(doubled, doubled));
    EACH_GROUP(g) {
        const lane_mask good = below[g] & on_curve[g] & present[g];
        block->bad_key[g] = present[g] & (lane_mask)~good;
        choose_limbs(block->key.x.limb[g], good, x.limb[g], generator_x.limb[g]);
        choose_limbs(block->key.y2.limb[g], good, y2.limb[g], generator_y2.limb[g]);
    }
}

// MARK: Sums

/// A point that is being summed, and the lanes in which its sign is flipped.
typedef struct {
    Point point;
    lane_mask flipped[GROUPS];
} Accumulator;

INLINE void flip(Accumulator *a) {
    EACH_GROUP(g) a->flipped[g] = (lane_mask)~a->flipped[g];
}

INLINE void accumulate(Accumulator *a, const Affine *term, const lane_mask negative[GROUPS]) {
    lane_mask mask[GROUPS];
    EACH_GROUP(g) mask[g] = negative[g] ^ a->flipped[g];
    add_affine(&a->point, term, mask);
    flip(a);
}

INLINE void double_repeatedly(Accumulator *a, int times) {
    for (int k = 0; k < times; k++) {
        double_point(&a->point);
        flip(a);
    }
}

/// The addresses of the rows for digit `place` of every lane of a group. Returns the lanes with a negative digit.
INLINE lane_mask digit_rows(lanes *address, const lanes u[LIMBS], lanes table, int place, Shape shape) {
    lanes row;
    const uint64_t subtable = (uint64_t)(place / shape.columns) << (shape.width - 1);
    const lane_mask negative = odd_digit(&row, u, place, shape.width, shape.digits);
    *address = plus(table, shift_left(plus(row, broadcast(subtable)), 6));
    return negative;
}

/// The table point for digit `place` of every lane, and its sign.
INLINE void digit_point(
    Affine *term, lane_mask negative[GROUPS], lanes u[GROUPS][LIMBS], const lanes table[GROUPS], int place,
    Shape shape) {
    lanes address[GROUPS];
    EACH_GROUP(g) negative[g] = digit_rows(&address[g], u[g], table[g], place, shape);
    load_rows(term, address);
}

/// Prefetches the rows of a block.
INLINE void prefetch_rows(lanes u[GROUPS][LIMBS], const lanes table[GROUPS], Shape shape) {
    for (int place = 0; place < shape.digits; place++) {
        EACH_GROUP(g) {
            uint64_t at[LANES];
            lanes address;
            digit_rows(&address, u[g], table[g], place, shape);
            store(at, address);
            UNROLL(lane, 0, LANES) __builtin_prefetch((const void *)at[lane]);
        }
    }
}

/// Rows that will be used later and are prefetched a few at a time during other work, so that the memory works while
/// the multiplier does. A processor has room for few outstanding loads: prefetching all rows at once would stall it.
typedef struct {
    /// Addresses; those before `next` have been prefetched.
    uint64_t *row;
    int next, count;
} PrefetchQueue;

/// Adds the rows for all digits of `u`.
INLINE void queue_rows(PrefetchQueue *queue, lanes u[GROUPS][LIMBS], const lanes table[GROUPS], Shape shape) {
    for (int place = 0; place < shape.digits; place++)
        EACH_GROUP(g) {
            lanes address;
            digit_rows(&address, u[g], table[g], place, shape);
            store(&queue->row[queue->count], address);
            queue->count += LANES;
        }
}

/// Prefetches the next rows, `count` of them or as many as there are.
INLINE void prefetch_next(PrefetchQueue *queue, int count) {
    const int end = queue->count - queue->next < count ? queue->count : queue->next + count;
    while (queue->next < end) __builtin_prefetch((const void *)queue->row[queue->next++]);
}

/// The table points for all digits of `u`, with their signs, from leaf `first` on: column by column, the last column
/// first.
NOINLINE void load_leaves(
    Leaves *leaves, int first, lanes u[GROUPS][LIMBS], const lane_mask opposite_signs[GROUPS],
    const lanes table[GROUPS], Shape shape) {
    const Digits zero = constant((const uint64_t[LIMBS]){0});
    for (int column = shape.columns - 1; column >= 0; column--)
        for (int place = column; place < shape.digits; place += shape.columns) {
            Affine *leaf = &leaves->point[first++];
            lane_mask negative[GROUPS];
            digit_point(leaf, negative, u, table, place, shape);
            const Sum negated = add_p(subtract(sum_of(&zero), sum_of(&leaf->y2)), 1);
            EACH_GROUP(g)
                choose_limbs(leaf->y2.limb[g], negative[g] ^ opposite_signs[g], negated.limb[g], leaf->y2.limb[g]);
        }
}

/// a += u G.
NOINLINE void accumulate_generator(Accumulator *a, Block *block, const uint64_t *generator) {
    lanes table[GROUPS];
    EACH_GROUP(g) table[g] = broadcast((uint64_t)(uintptr_t)generator);
    for (int place = 0; place < GENERATOR.digits; place++) {
        Affine term;
        lane_mask negative[GROUPS];
        digit_point(&term, negative, block->u1, table, place, GENERATOR);
        EACH_GROUP(g) negative[g] ^= block->opposite_signs[g];
        accumulate(a, &term, negative);
    }
}

/// a = u2 Q of the keys whose tables stand at `table`; u1 G + u2 Q if there is a `generator`. Prefetches rows of
/// `queue` meanwhile.
///
/// An addition of d Q to a Q meets an exceptional case (point.h) when a + d or a - d is 0 modulo n. In each column, d
/// is a digit times 2^(width columns s), which is odd for s = 0 and even for the others. a is even until the digit of
/// s = 0 is added, because it was doubled, and odd from then on. So a +- d is odd, hence not 0. Above column 0 it is
/// less than n, and no addition meets an exceptional case. In column 0 it is less than 2 n, and could be n. With the
/// last digit that is added:
///
/// - a + d = n: u2 is n, that is, 0 modulo n. But r is not 0.
/// - a - d is n or -n: the digits of u2, or of -u2, are those of n, but for the sign of the last one. A new key has one
///   digit in column 0, -15 for n, so that u2 would be n + 30. The last digit of a known key is number 40 in 4 columns,
///   63 for n; and number 42 in 2 columns, 15 for n. So u2 is n - 126 2^240 or 30 2^252 - n, for all keys the same.
///   Everybody can make a signature with it.
///
/// So the generator's points are added to those of a known key before column 0. From then on, a Q + b G is added to d G
/// or d Q. That is an exceptional case only when it tells the private key, or when u1 is 0 modulo n (`decide`): no a
/// before column 0 is 0 modulo n, because a is even, not 0 and less than 2 n.
NOINLINE void multiply_key(
    Accumulator *a, Block *block, const lanes table[GROUPS], Shape shape, const uint64_t *generator,
    PrefetchQueue *queue) {
    Affine term;
    lane_mask negative[GROUPS];
    int column = shape.columns - 1, place = column;
    if (shape.columns == shape.digits) {
        // The last digit stands for bits that no scalar has: it is 1. 32 Q = 31 Q + Q replaces it and the doublings
        // that follow it. (31 Q is not Q or -Q: the order of Q is n.)
        lanes last[GROUPS];
        EACH_GROUP(g) last[g] = plus(table[g], broadcast((CHAIN - 1) * ROW_WORDS * 8));
        load_rows(&term, last);
        set_affine(&a->point, &term);
        EACH_GROUP(g) a->flipped[g] = 0;
        load_rows(&term, table);
        accumulate(a, &term, NONE);
        place = --column;
        digit_point(&term, negative, block->u2, table, place, shape);
        accumulate(a, &term, negative);
    } else {
        digit_point(&term, negative, block->u2, table, place, shape);
        set_affine(&a->point, &term);
        EACH_GROUP(g) a->flipped[g] = negative[g];
    }
    for (place += shape.columns;; place += shape.columns) {
        while (place >= shape.digits) {
            if (column == 0) return;
            place = --column;
            double_repeatedly(a, shape.width);
            if (column == 0 && generator) accumulate_generator(a, block, generator);
        }
        digit_point(&term, negative, block->u2, table, place, shape);
        accumulate(a, &term, negative);
        // 51 additions a block, with half a row for every lane each, or a row for a single lane: more than all 20.
        prefetch_next(queue, (BLOCK + 1) / 2);
    }
}

// MARK: Outcomes

/// Lanes in which the sum's x is `candidate`, of clean limbs below p; `zz`: the sum's Z^2, which is not 0.
///
/// Let x = X / Z^2. Then x = c exactly when X = c Z^2 modulo p, which takes no inversion. The lanes that are invalid
/// anyway may hold any clean limbs.
NOINLINE void has_x(lane_mask equal[GROUPS], const Point *sum, const Digits *zz, lanes candidate[GROUPS][LIMBS]) {
    Digits c;
    EACH_GROUP(g)
        EACH_LIMB(i) c.limb[g][i] = candidate[g][i];
    digits_of_integer(&c);
    const Sum distance = add_p(subtract(sum->x, product(&c, zz)), 2);
    check_sum_range(&distance, 3.4, 11.7, "outcome: X - c Z^2 + 2 p from 3.4 p to 11.7 p");
    const Digits difference = digits(distance);
    is_zero(equal, &difference);
}

/// Compares the sums' x with r, and writes the outcomes of a block.
///
/// Let x be the sum's coordinate, from 0 to p - 1, and r from 1 to n - 1 (other lanes are invalid before their sum is
/// looked at). The signature is valid exactly when x mod n = r. Since n < p < 2 n, x mod n is x or x - n, so that x = r
/// or x = r + n; and x = r + n is possible only if r + n < p, that is, r < p - n.
///
/// - x = r: the signature is valid, whatever r is.
/// - x != r and r >= p - n: r + n is not below p, so it is not x, and the signature is invalid. r + n must not be
///   compared here: modulo p it is r + n - p, which may be x.
/// - x != r and r < p - n (`small`): the signature is valid exactly when x = r + n, which is below p.
///
/// p - n is below 2^127, so a signature made with a random nonce has such an r with a probability below 2^-129. A block
/// without one leaves the second comparison out. In a block with one, which somebody has made on purpose, it costs two
/// multiplications in the field and changes the outcome of no other lane.
///
/// Z = 0 says that a formula did not hold (point.h), and X is worth nothing. The comparison could even succeed: adding
/// P to itself leaves X = 0 and Z = 0, and then X = c Z^2 holds for every c. So these lanes are undecided before
/// `equal` is looked at, as are the lanes that a tree has left undecided. A library decides them. That costs as much as
/// ten verifications with a new key, or up to a hundred with a known one. So it matters who can make such a signature.
///
/// Whoever chooses r and s chooses u1 and u2, for any key and any digest but 0. Every addition joins two points
/// a Q + b G and c Q + d G, whose factors follow from u1 and u2. Let k be the private key, Q = k G. The addition is
/// exceptional when (a +- c) k + (b +- d) is 0 modulo n, with one of the signs. There are two ways to this:
///
/// - a +- c is not 0 modulo n. Then k is -(b +- d) / (a +- c), and only the owner of the private key can find such
///   scalars. r is not the sum's x, and the signature is invalid, unless the key was made to fit the digest.
/// - a +- c and b +- d are 0 modulo n. If there were such scalars, everybody could find them, for all keys at once.
///   `multiply_key` and `sum_runs` leave only u1 = 0. It needs a digest of 0 modulo n, and nobody knows data with one.
NOINLINE void decide(
    const Accumulator *a, Block *block, const lane_mask bad_key[GROUPS], const lane_mask undecided_before[GROUPS],
    size_t count, uint8_t *outcomes) {
    Digits zz;
    lane_mask equal[GROUPS], z_is_zero[GROUPS], small[GROUPS], any_small = 0;
    square_digits(&zz, &a->point.z);
    has_x(equal, &a->point, &zz, block->r);
    EACH_GROUP(g) {
        small[g] = is_below(block->r[g], P_MINUS_N) & block->in_range[g];
        any_small |= small[g];
    }
    if (any_small) {
        lanes second[GROUPS][LIMBS];
        lane_mask equal_to_second[GROUPS];
        EACH_GROUP(g) add_order(second[g], block->r[g], small[g]);
        has_x(equal_to_second, &a->point, &zz, second);
        EACH_GROUP(g) equal[g] |= small[g] & equal_to_second[g];
    }
    is_zero(z_is_zero, &a->point.z);
    EACH_GROUP(g) {
        const lane_mask undecided = z_is_zero[g] | undecided_before[g];
        for (int lane = 0; lane < LANES; lane++) {
            const size_t position = (size_t)(g * LANES + lane);
            if (position >= count) return;
            outcomes[position] = bad_key[g] >> lane & 1 ? RG_P256_BAD_KEY
                : !(block->in_range[g] >> lane & 1)     ? RG_P256_INVALID
                : undecided >> lane & 1                 ? RG_P256_UNDECIDED
                : equal[g] >> lane & 1                  ? RG_P256_VALID
                                                        : RG_P256_INVALID;
        }
    }
}

INLINE void decide_block(
    const Accumulator *a, Block *block, const lane_mask bad_key[GROUPS], const lane_mask undecided_before[GROUPS],
    int number, size_t count, uint8_t *outcomes) {
    const size_t first = (size_t)number * BLOCK;
    decide(a, block, bad_key, undecided_before, count - first < BLOCK ? count - first : BLOCK, outcomes + first);
}

/// The generator's rows for up to TREE_BLOCKS blocks from `first` on.
INLINE PrefetchQueue generator_rows(Workspace *w, int first, int blocks, const lanes generators[GROUPS]) {
    PrefetchQueue queue = {w->rows, 0, 0};
    for (int b = first; b < blocks && b < first + TREE_BLOCKS; b++)
        queue_rows(&queue, w->block[b].u1, generators, GENERATOR);
    return queue;
}

/// Computes the scalars of a batch, and the generator's address for every lane. Returns the batch's blocks.
static int begin_batch(
    Workspace *w, const rg_p256_check *checks, size_t count, const uint64_t *generator, lanes generators[GROUPS]) {
    compute_scalars(w, checks, count);
    EACH_GROUP(g) generators[g] = broadcast((uint64_t)(uintptr_t)generator);
    return blocks_of(count);
}

NOINLINE void verify_batch(
    const rg_p256_check *checks, size_t count, const uint64_t *generator, void *workspace, uint8_t *outcomes) {
    Workspace *w = workspace;
    lanes generators[GROUPS];
    const int blocks = begin_batch(w, checks, count, generator, generators);
    PrefetchQueue queue = generator_rows(w, 0, blocks, generators);
    for (int b = 0; b < blocks; b++) {
        const uint8_t *points[BLOCK];
        for (int k = 0; k < BLOCK; k++) {
            const size_t position = (size_t)(b * BLOCK + k);
            points[k] = position < count ? checks[position].point : 0;
        }
        Block *block = &w->block[b];
        load_keys(block, points);
        begin_chain(&block->chain, &block->key);
        for (int k = 1; k < CHAIN; k++) {
            extend_chain(&block->chain, k - 1, k);
            // 15 multiples a block, with two rows for every lane each: more than all 20.
            prefetch_next(&queue, 2 * BLOCK);
        }
        residue_of_digits(&w->inverse[b * GROUPS], &block->chain.z);
    }
    // All points are on the curve, so no Z of a chain is 0 (chain.h).
    const int is_inverted = invert_many(w->inverse, blocks * GROUPS, w->scratch, &FIELD_PRIME);
    kernel_check(is_inverted, "keys: no Z of a chain is zero");
    for (int first = 0; first < blocks; first += TREE_BLOCKS) {
        const int some = blocks - first < TREE_BLOCKS ? blocks - first : TREE_BLOCKS;
        lane_mask undecided[TREE_BLOCKS][GROUPS];
        memset(undecided, 0, sizeof undecided);
        const int by_tree = some >= TREE_BLOCKS_MIN;
        if (by_tree) {
            const Run generator_run = {0, GENERATOR.digits};
            for (int b = 0; b < some; b++)
                load_leaves(
                    &w->tree.leaves[b], 0, w->block[first + b].u1, w->block[first + b].opposite_signs, generators,
                    GENERATOR);
            sum_runs(&w->tree, some, &generator_run, 1, undecided);
        }
        queue = generator_rows(w, first + TREE_BLOCKS, blocks, generators);
        for (int b = 0; b < some; b++) {
            Block *block = &w->block[first + b];
            uint64_t *rows[BLOCK], address[BLOCK];
            for (int k = 0; k < BLOCK; k++) {
                rows[k] = block->rows[k];
                address[k] = (uint64_t)(uintptr_t)rows[k];
            }
            Digits inverse;
            digits_of_residue(&inverse, &w->inverse[(first + b) * GROUPS]);
            store_chain(&block->chain, &inverse, rows);
            Accumulator sum;
            lanes table[GROUPS];
            EACH_GROUP(g) table[g] = load(address + g * LANES);
            multiply_key(&sum, block, table, NEW_KEY, 0, &queue);
            if (by_tree) {
                accumulate(&sum, &w->tree.leaves[b].point[0], NONE);
            } else {
                accumulate_generator(&sum, block, generator);
            }
            decide_block(&sum, block, block->bad_key, undecided[b], first + b, count, outcomes);
        }
    }
}

NOINLINE void verify_known_batch(
    const rg_p256_check *checks, const uint64_t *const *tables, size_t count, const uint64_t *generator,
    void *workspace, uint8_t *outcomes) {
    Workspace *w = workspace;
    lanes generators[GROUPS];
    const int blocks = begin_batch(w, checks, count, generator, generators);
    for (int first = 0; first < blocks; first += TREE_BLOCKS) {
        const int some = blocks - first < TREE_BLOCKS ? blocks - first : TREE_BLOCKS;
        lanes table[TREE_BLOCKS][GROUPS];
        lane_mask undecided[TREE_BLOCKS][GROUPS];
        memset(undecided, 0, sizeof undecided);
        const int by_tree = some >= TREE_BLOCKS_MIN;
        for (int b = 0; b <= some; b++) {
            // The prefetches are one block ahead of the loads.
            if (b < some) {
                Block *block = &w->block[first + b];
                uint64_t address[BLOCK];
                for (int k = 0; k < BLOCK; k++) {
                    const size_t position = (size_t)((first + b) * BLOCK + k);
                    address[k] = (uint64_t)(uintptr_t)tables[position < count ? position : 0];
                }
                EACH_GROUP(g) table[b][g] = load(address + g * LANES);
                // All at once: between the tree's additions they would compete with the tree's own loads.
                prefetch_rows(block->u2, table[b], KNOWN_KEY);
                prefetch_rows(block->u1, generators, GENERATOR);
            }
            if (b == 0) continue;
            Block *block = &w->block[first + b - 1];
            if (by_tree) {
                // The key's column 0 comes last, and the generator's points continue it. So the sum of the other
                // columns is not added to column 0 alone (`multiply_key`).
                load_leaves(&w->tree.leaves[b - 1], 0, block->u2, NONE, table[b - 1], KNOWN_KEY);
                load_leaves(
                    &w->tree.leaves[b - 1], KNOWN_KEY.digits, block->u1, block->opposite_signs, generators, GENERATOR);
                continue;
            }
            Accumulator sum;
            PrefetchQueue empty = {0};
            multiply_key(&sum, block, table[b - 1], KNOWN_KEY, generator, &empty);
            decide_block(&sum, block, NONE, NONE, first + b - 1, count, outcomes);
        }
        if (!by_tree) continue;
        Run columns[8];
        int leaf = 0;
        for (int k = 0; k < KNOWN_KEY.columns; k++) {
            const int column = KNOWN_KEY.columns - 1 - k;
            columns[k] = (Run){leaf, (KNOWN_KEY.digits - column + KNOWN_KEY.columns - 1) / KNOWN_KEY.columns};
            leaf += columns[k].count;
        }
        columns[KNOWN_KEY.columns - 1].count += GENERATOR.digits;
        sum_runs(&w->tree, some, columns, KNOWN_KEY.columns, undecided);
        for (int b = 0; b < some; b++) {
            Accumulator sum;
            const Affine *point = w->tree.leaves[b].point;
            set_affine(&sum.point, &point[columns[0].first]);
            EACH_GROUP(g) sum.flipped[g] = 0;
            for (int k = 1; k < KNOWN_KEY.columns; k++) {
                double_repeatedly(&sum, KNOWN_KEY.width);
                accumulate(&sum, &point[columns[k].first], NONE);
            }
            decide_block(&sum, &w->block[first + b], NONE, undecided[b], first + b, count, outcomes);
        }
    }
}

// MARK: Tables

/// The odd multiples of the affine points, `rows` of them, for every lane that has a table; a multiple of CHAIN.
/// False when a Z is 0, which does not happen with points of the curve (chain.h).
static int build_subtable(Chain *chain, const Affine *p, int rows, uint64_t *const table_of_lane[BLOCK]) {
    begin_chain(chain, p);
    for (int row = 0; row < rows; row += CHAIN) {
        uint64_t *table[BLOCK];
        for (int k = 0; k < BLOCK; k++) table[k] = table_of_lane[k] ? table_of_lane[k] + ROW_WORDS * row : 0;
        if (row > 0) extend_chain(chain, CHAIN - 1, 0);
        for (int k = 1; k < CHAIN; k++) extend_chain(chain, k - 1, k);
        Digits inverse;
        if (!invert_digits(&inverse, &chain->z)) return 0;
        store_chain(chain, &inverse, table);
    }
    return 1;
}

/// Tables of the given shape for the affine points. False when a Z is 0, which does not happen with points of the
/// curve: none of their multiples that are made here is infinity, and no point has order 2 (point.h).
static int build_tables(Chain *chain, Affine *p, Shape shape, uint64_t *const table_of_lane[BLOCK]) {
    const int subtables = (shape.digits + shape.columns - 1) / shape.columns, rows = 1 << (shape.width - 1);
    for (int s = 0; s < subtables; s++) {
        uint64_t *table[BLOCK];
        for (int k = 0; k < BLOCK; k++)
            table[k] = table_of_lane[k] ? table_of_lane[k] + (size_t)ROW_WORDS * rows * s : 0;
        if (!build_subtable(chain, p, rows, table)) return 0;
        if (s == subtables - 1) break;
        Accumulator a;
        set_affine(&a.point, p);
        EACH_GROUP(g) a.flipped[g] = 0;
        double_repeatedly(&a, shape.width * shape.columns);
        Digits inverse, zz, zzz;
        if (!invert_digits(&inverse, &a.point.z)) return 0;
        square_digits(&zz, &inverse);
        multiply(&zzz, &zz, &inverse);
        multiply(&p->x, &a.point.x_digits, &zz);
        multiply(&p->y2, &a.point.v_digits, &zzz);
        canonical(&p->x, &p->x);
        canonical(&p->y2, &p->y2);
        // An odd number of doublings left the sign flipped.
        if (a.flipped[0]) {
            const Digits zero = {0};
            p->y2 = difference(&zero, &p->y2, 0);
            canonical(&p->y2, &p->y2);
        }
    }
    return 1;
}

NOINLINE void build_generator_table(uint64_t *generator, void *workspace) {
    Workspace *w = workspace;
    Affine p;
    p.x = constant(GENERATOR_X);
    const Digits y = constant(GENERATOR_Y);
    p.y2 = clean_digits(add(sum_of(&y), sum_of(&y)));
    canonical(&p.y2, &p.y2);
    uint64_t *table_of_lane[BLOCK] = {generator};
    build_tables(&w->block[0].chain, &p, GENERATOR, table_of_lane);
}

NOINLINE int build_known_tables(const uint8_t *const *points, uint64_t *const *tables, size_t count, void *workspace) {
    Workspace *w = workspace;
    for (size_t first = 0; first < count; first += BLOCK) {
        const uint8_t *own[BLOCK];
        uint64_t *table_of_lane[BLOCK];
        for (int k = 0; k < BLOCK; k++) {
            const size_t position = first + (size_t)k;
            own[k] = position < count ? points[position] : 0;
            table_of_lane[k] = position < count ? tables[position] : 0;
        }
        Block *block = &w->block[0];
        load_keys(block, own);
        EACH_GROUP(g)
            if (block->bad_key[g]) return 0;
        if (!build_tables(&block->chain, &block->key, KNOWN_KEY, table_of_lane)) return 0;
    }
    return 1;
}

// MARK: The kernel's functions

INLINE void check_count(size_t count) {
    kernel_check(count > 0 && count <= RG_P256_BATCH_MAX, "batch: from 1 to RG_P256_BATCH_MAX checks");
}

/// How many of the checks that are left are verified together.
INLINE size_t part(size_t rest) { return rest < CHECKS_TOGETHER ? rest : CHECKS_TOGETHER; }

static void build_generator(uint64_t *generator, void *workspace) {
    const arithmetic before = begin_arithmetic();
    build_generator_table(generator, workspace);
    end_arithmetic(before);
}

static void verify(
    const rg_p256_check *checks, size_t count, const uint64_t *generator, void *workspace, uint8_t *outcomes) {
    const arithmetic before = begin_arithmetic();
    check_count(count);
    for (size_t first = 0; first < count; first += CHECKS_TOGETHER)
        verify_batch(checks + first, part(count - first), generator, workspace, outcomes + first);
    end_arithmetic(before);
}

static void verify_known(
    const rg_p256_check *checks, const uint64_t *const *tables, size_t count, const uint64_t *generator,
    void *workspace, uint8_t *outcomes) {
    const arithmetic before = begin_arithmetic();
    check_count(count);
    for (size_t first = 0; first < count; first += CHECKS_TOGETHER)
        verify_known_batch(checks + first, tables + first, part(count - first), generator, workspace, outcomes + first);
    end_arithmetic(before);
}

static int build_known(const uint8_t *const *points, uint64_t *const *tables, size_t count, void *workspace) {
    const arithmetic before = begin_arithmetic();
    const int is_done = build_known_tables(points, tables, count, workspace);
    end_arithmetic(before);
    return is_done;
}

/// The table of a kernel's functions.
#define FUNCTIONS \
    { BLOCK, sizeof(Workspace), KNOWN_KEY_BYTES, KNOWN_KEY_FORM, build_generator, verify, verify_known, build_known }
