// The field of P-256, p = 2^256 - 2^224 + 2^192 + 2^96 - 1, in Montgomery form with radix 2^260.
//
// A value is five limbs of weight 2^(52 i). There are two kinds:
//
// - Sum: limbs are signed 64-bit integers below 2^61 in magnitude. Sums are added and subtracted limb by limb.
// - Digits: the operands of the multiplier. Only the low 52 bits of each limb count, and the value of those bits
//   is from 0 to 2^260 - 1, a little more than 16 p. `digits` carries a sum. It does not mask the upper bits,
//   because `factor_of` or the multiplier ignores them. Digits whose upper bits are zero are clean.
//
// Bounds are stated in multiples of p. The product of a p and b p is from 0 to (a b / 16 + 1) p: the reduction adds
// m p with m < 2^260 and divides by 2^260, and p / 2^260 is a little less than 1 / 16. A limb of a product is the sum
// of at most 26 numbers below 2^52 (20 parts of two products, 6 parts of the reduction) and a carry, so it is below
// 2^57.
//
// Debug builds check every bound that is stated here and in the files above this one (bounds.h).
#pragma once

#include "bounds.h"
#include "constants.h"
#include "lanes.h"
#include "limbs.h"
#include "modulus.h"

typedef struct {
    lanes limb[GROUPS][LIMBS];
} Sum;
typedef struct {
    lanes limb[GROUPS][LIMBS];
} Digits;

/// Limb i of k p, in the sparse form that has negative limbs: (-k, k 2^44, 0, k 2^36, k (2^48 - 2^16)).
INLINE lanes limb_of_p(int i, int64_t k) {
    const int64_t limb[LIMBS] = {-k, k << 44, 0, k << 36, k * ((1ll << 48) - (1ll << 16))};
    return broadcast((uint64_t)limb[i]);
}

// MARK: Contracts

/// Limbs of a sum are below 2^61 in magnitude.
INLINE void check_sum(const Sum *a) {
    EACH_GROUP(g) check_signed_limbs(a->limb[g], 61, "sum: limbs below 2^61 in magnitude");
}

/// A sum is from `low` p to `high` p.
INLINE void check_sum_range(const Sum *a, double low, double high, const char *bound) {
    EACH_GROUP(g) check_value(a->limb[g], low, high, bound);
}

/// Digits are from `low` p to `high` p.
INLINE void check_digits(const Digits *a, double low, double high, const char *bound) {
    EACH_GROUP(g) check_low_bits(a->limb[g], low, high, bound);
}

/// Digits can be read as a sum: no limb is negative or has upper bits.
INLINE void check_clean(const Digits *a, const char *bound) {
    EACH_GROUP(g) check_limbs(a->limb[g], LIMB_BITS, bound);
}

/// `product` is what a reduction leaves of a b, or of a b + c d.
INLINE void check_product(const Sum *product, const Digits *a, const Digits *b, const Digits *c, const Digits *d) {
    if (KERNEL_CHECKS_ON)
        EACH_GROUP(g) check_reduction(product->limb[g], a->limb[g], b->limb[g], c ? c->limb[g] : 0, d ? d->limb[g] : 0);
}

// MARK: Sums

INLINE Sum add(Sum a, Sum b) {
    EACH_GROUP(g)
        EACH_LIMB(i) a.limb[g][i] = plus(a.limb[g][i], b.limb[g][i]);
    check_sum(&a);
    return a;
}

INLINE Sum subtract(Sum a, Sum b) {
    EACH_GROUP(g)
        EACH_LIMB(i) a.limb[g][i] = minus(a.limb[g][i], b.limb[g][i]);
    check_sum(&a);
    return a;
}

/// a + k p.
INLINE Sum add_p(Sum a, int k) {
    EACH_GROUP(g)
        EACH_LIMB(i)
            if (i != 2) a.limb[g][i] = plus(a.limb[g][i], limb_of_p(i, k));
    check_sum(&a);
    return a;
}

/// Clean digits as a sum.
INLINE Sum sum_of(const Digits *clean) {
    Sum r;
    check_clean(clean, "sum of digits: of clean limbs");
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = clean->limb[g][i];
    return r;
}

/// Carries. The sum is from 0 to 2^260 - 1.
INLINE Digits digits(Sum a) {
    Digits r;
    if (HAS_SIGNED_SHIFTS) {
        UNROLL(i, 0, LIMBS - 1)
            EACH_GROUP(g) a.limb[g][i + 1] = plus(a.limb[g][i + 1], carry_of(a.limb[g][i]));
    } else {
        // 2^61 more makes a limb positive, and 2^9 less takes the same from the next.
        UNROLL(i, 0, LIMBS)
            EACH_GROUP(g)
                a.limb[g][i] = plus(
                    a.limb[g][i], broadcast((i < LIMBS - 1 ? 1ull << 61 : 0) - (i > 0 ? 1ull << (61 - LIMB_BITS) : 0)));
        UNROLL(i, 0, LIMBS - 1)
            EACH_GROUP(g) a.limb[g][i + 1] = plus(a.limb[g][i + 1], shift_right(a.limb[g][i], LIMB_BITS));
    }
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = a.limb[g][i];
    EACH_GROUP(g) check_below_power(r.limb[g][4], LIMB_BITS, "digits: from 0 to 2^260 - 1");
    return r;
}

/// Carries of a product, whose limbs are not negative. The product is from 0 to 2^260 - 1.
INLINE Digits product_digits(Sum a) {
    Digits r;
    UNROLL(i, 0, LIMBS - 1)
        EACH_GROUP(g) a.limb[g][i + 1] = plus(a.limb[g][i + 1], shift_right(a.limb[g][i], LIMB_BITS));
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = a.limb[g][i];
    EACH_GROUP(g) check_below_power(r.limb[g][4], LIMB_BITS, "digits: from 0 to 2^260 - 1");
    return r;
}

/// The same value modulo p, from 0 to p + 2^225 (h + 1), where h is what stands above the low 48 bits of the top limb.
/// The sum is from 0 to 2^268 - 1, and its top limb is not negative.
///
/// h 2^256 becomes h (2^256 - p) = h (2^224 - 2^192 - 2^96 + 1). The rest is below 2^256 + 2^218, since the limbs below
/// the top one are below 2^61, and 2^256 is below p + 2^224. The rest is negative only by less than 2^218, and only
/// when h is not 0.
INLINE Sum reduce_weakly(Sum a) {
    EACH_GROUP(g) {
        const lanes high = shift_right(a.limb[g][4], 48);
        check_value(a.limb[g], 0, 4096, "weak reduction: of 0 to 2^268 - 1");
        check_below_power(high, 12, "weak reduction: of a top limb from 0 to 2^60 - 1");
        a.limb[g][4] = plus(bit_and(a.limb[g][4], broadcast((1ull << 48) - 1)), shift_left(high, 16));
        a.limb[g][0] = plus(a.limb[g][0], high);
        a.limb[g][1] = minus(a.limb[g][1], shift_left(high, 44));
        a.limb[g][3] = minus(a.limb[g][3], shift_left(high, 36));
        if (KERNEL_CHECKS_ON) check_weak_reduction(a.limb[g], high);
    }
    return a;
}

/// Clean digits of the weakly reduced sum, with the same bounds. They are below 2^256 when the sum has clean limbs and
/// is below 2 p, or p + 2^230: then either nothing is taken off, or p once.
INLINE Digits clean_digits(Sum a) {
    Digits r = digits(reduce_weakly(a));
    UNROLL(i, 0, LIMBS - 1)
        EACH_GROUP(g) r.limb[g][i] = low_bits(r.limb[g][i]);
    check_clean(&r, "clean digits: limbs from 0 to 2^52 - 1");
    return r;
}

// MARK: Products

typedef struct {
    factor limb[GROUPS][LIMBS];
} Factors;

INLINE Factors factors_of(const Digits *a) {
    Factors r;
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = factor_of(a->limb[g][i]);
    return r;
}

/// t[i...i + 5] += a's limb i times b's limbs from `first` on.
INLINE void multiply_row(lanes t[GROUPS][2 * LIMBS], const Factors *a, const Factors *b, int i, int first) {
    UNROLL(j, first, LIMBS)
        EACH_GROUP(g) {
            t[g][i + j] = add_low(t[g][i + j], a->limb[g][i], b->limb[g][j]);
            t[g][i + j + 1] = add_high(t[g][i + j + 1], a->limb[g][i], b->limb[g][j]);
        }
}

/// Clears limb i of t: adds p times its low 52 bits (p is -1 modulo 2^52, so they are the Montgomery factor m
/// themselves) and carries the rest. The next step depends on limb i + 1, which is therefore computed with shifts:
/// their latency is below that of the multiplier. No limb of t is negative.
INLINE void reduce_row(lanes t[GROUPS][2 * LIMBS], int i) {
    EACH_GROUP(g) {
        const lanes limb = t[g][i];
        const factor m = factor_of(limb), at256 = factor_of(broadcast((1ull << 48) - (1ull << 16)));
        t[g][i + 1] = plus(t[g][i + 1], insert_low(shift_right(limb, LIMB_BITS), shift_left(limb, 44)));
        if (SHIFTS_ARE_QUICKER) {
            const lanes low = low_bits(limb);
            t[g][i + 2] = plus(t[g][i + 2], shift_right(low, 8));
            t[g][i + 3] = plus(t[g][i + 3], low_bits(shift_left(limb, 36)));
            t[g][i + 4] = plus(t[g][i + 4], shift_right(low, 16));
        } else {
            const factor at96 = factor_of(broadcast(1ull << 44)), at192 = factor_of(broadcast(1ull << 36));
            t[g][i + 2] = add_high(t[g][i + 2], m, at96);
            t[g][i + 3] = add_low(t[g][i + 3], m, at192);
            t[g][i + 4] = add_high(t[g][i + 4], m, at192);
        }
        t[g][i + 4] = add_low(t[g][i + 4], m, at256);
        t[g][i + 5] = add_high(t[g][i + 5], m, at256);
    }
}

/// Accumulators for so many products and their reduction. When `is_doubled`, t will be doubled on the way.
INLINE void clear(lanes t[GROUPS][2 * LIMBS], int products, int is_doubled) {
    // Where shifts are quicker, the reduction of row i adds a product's halves to limbs i + 4 and i + 5 only.
    EACH_GROUP(g)
        UNROLL(k, 0, 2 * LIMBS) {
            const int lows = k >= LIMBS - 1 && k < 2 * LIMBS - 1, highs = k >= LIMBS;
            t[g][k] = is_doubled ? plus(accumulator(k, products), biased(lows, highs))
                                 : plus(accumulator(k, 2 * products), biased(2 * lows, 2 * highs));
        }
}

INLINE Sum upper_half(lanes t[GROUPS][2 * LIMBS]) {
    Sum r;
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = t[g][LIMBS + i];
    return r;
}

PRODUCT Sum product(const Digits *a, const Digits *b) {
    lanes t[GROUPS][2 * LIMBS];
    const Factors a_factors = factors_of(a), b_factors = factors_of(b);
    clear(t, 1, 0);
    EACH_LIMB(i) {
        multiply_row(t, &a_factors, &b_factors, i, 0);
        reduce_row(t, i);
    }
    const Sum r = upper_half(t);
    check_product(&r, a, b, 0, 0);
    return r;
}

/// t = 2 t + a * a, not reduced: all products of two different limbs are doubled.
INLINE void square_into(lanes t[GROUPS][2 * LIMBS], const Digits *a) {
    const Factors a_factors = factors_of(a);
    EACH_LIMB(i) multiply_row(t, &a_factors, &a_factors, i, i + 1);
    EACH_GROUP(g)
        UNROLL(k, 0, 2 * LIMBS) t[g][k] = plus(t[g][k], t[g][k]);
    EACH_LIMB(i)
        EACH_GROUP(g) {
            t[g][2 * i] = add_low(t[g][2 * i], a_factors.limb[g][i], a_factors.limb[g][i]);
            t[g][2 * i + 1] = add_high(t[g][2 * i + 1], a_factors.limb[g][i], a_factors.limb[g][i]);
        }
}

PRODUCT Sum square(const Digits *a) {
    lanes t[GROUPS][2 * LIMBS];
    clear(t, 1, 1);
    square_into(t, a);
    EACH_LIMB(i) reduce_row(t, i);
    const Sum r = upper_half(t);
    check_product(&r, a, a, 0, 0);
    return r;
}

/// a^2 + b c under one reduction: from 0 to ((a^2 + b c) / 16 + 1) p, at most 33 p for any digits.
PRODUCT Sum square_plus_product(const Digits *a, const Digits *b, const Digits *c) {
    lanes t[GROUPS][2 * LIMBS];
    clear(t, 2, 1);
    square_into(t, a);
    const Factors b_factors = factors_of(b), c_factors = factors_of(c);
    EACH_LIMB(i) {
        multiply_row(t, &b_factors, &c_factors, i, 0);
        reduce_row(t, i);
    }
    const Sum r = upper_half(t);
    check_product(&r, a, a, b, c);
    return r;
}

/// a b + c d under one reduction, with the same bound.
PRODUCT Sum product_plus_product(const Digits *a, const Digits *b, const Digits *c, const Digits *d) {
    lanes t[GROUPS][2 * LIMBS];
    const Factors a_factors = factors_of(a), b_factors = factors_of(b);
    const Factors c_factors = factors_of(c), d_factors = factors_of(d);
    clear(t, 2, 0);
    EACH_LIMB(i) {
        multiply_row(t, &a_factors, &b_factors, i, 0);
        multiply_row(t, &c_factors, &d_factors, i, 0);
        reduce_row(t, i);
    }
    const Sum r = upper_half(t);
    check_product(&r, a, b, c, d);
    return r;
}

// MARK: Out of line

/// r = a b. `r` may be a or b.
NOINLINE void multiply(Digits *r, const Digits *a, const Digits *b) { *r = product_digits(product(a, b)); }
/// r = a^2. `r` may be a.
NOINLINE void square_digits(Digits *r, const Digits *a) { *r = product_digits(square(a)); }
/// r = a b, clean.
NOINLINE void multiply_clean(Digits *r, const Digits *a, const Digits *b) { *r = clean_digits(product(a, b)); }
/// r = a b, clean and below 2^256. (A product has to be carried before it is reduced: the reduction looks at the top
/// limb alone.) a b is at most 15 p, so that the product is below 2 p.
NOINLINE void multiply_below_256_bits(Digits *r, const Digits *a, const Digits *b) {
    Digits carried = product_digits(product(a, b));
    UNROLL(i, 0, LIMBS - 1)
        EACH_GROUP(g) carried.limb[g][i] = low_bits(carried.limb[g][i]);
    check_digits(&carried, 0, 1.95, "product below 256 bits: below 2 p before it is reduced");
    *r = clean_digits(sum_of(&carried));
    EACH_GROUP(g) check_words(r->limb[g]);
}
NOINLINE void multiply_sum(Sum *r, const Digits *a, const Digits *b) { *r = product(a, b); }

INLINE Digits constant(const uint64_t limb[LIMBS]) {
    Digits r;
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = broadcast(limb[i]);
    return r;
}

/// Clean digits below p, of any digits.
NOINLINE void canonical(Digits *r, const Digits *a) {
    Digits clean = *a;
    EACH_GROUP(g)
        EACH_LIMB(i) clean.limb[g][i] = low_bits(clean.limb[g][i]);
    // The first reduction leaves less than p + 2^230, the second less than 2^256, which is less than 2 p.
    *r = clean_digits(sum_of(&clean));
    *r = clean_digits(sum_of(r));
    EACH_GROUP(g) {
        subtract_once(r->limb[g], P_LIMBS);
        if (KERNEL_CHECKS_ON) kernel_check(is_below(r->limb[g], P_LIMBS) == ALL_LANES, "canonical: below p");
    }
}

/// Lanes in which the digits are zero modulo p.
INLINE void is_zero(lane_mask zero[GROUPS], const Digits *a) {
    Digits r;
    canonical(&r, a);
    EACH_GROUP(g) zero[g] = ALL_LANES & ~is_nonzero(r.limb[g]);
}
