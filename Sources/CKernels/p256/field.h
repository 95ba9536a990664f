// The field of P-256, p = 2^256 - 2^224 + 2^192 + 2^96 - 1, in Montgomery form with radix 2^260.
//
// A value is five limbs of weight 2^(52 i). There are two kinds:
//
// - Sum: limbs are signed 64-bit integers below 2^61 in magnitude. Sums are added and subtracted limb by limb.
// - Digits: what the multiplier takes. Only the low 52 bits of each limb count, and the value that they make
//   is from 0 to 2^260 - 1, a little more than 16 p. `digits` makes them of a sum by carrying. Nothing is
//   masked: the multiplier does not look at the upper bits.
//
// Bounds are stated in multiples of p. The product of a p and b p is from 0 to (a b / 16 + 1) p, because
// p / 2^260 is a little less than 1 / 16; since its two factors are at most 16 p, its limbs are below 2^57.
#pragma once

#include "constants.h"
#include "lanes.h"
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

// MARK: Sums

INLINE Sum add(Sum a, Sum b) {
    EACH_GROUP(g)
        EACH_LIMB(i) a.limb[g][i] = plus(a.limb[g][i], b.limb[g][i]);
    return a;
}

INLINE Sum subtract(Sum a, Sum b) {
    EACH_GROUP(g)
        EACH_LIMB(i) a.limb[g][i] = minus(a.limb[g][i], b.limb[g][i]);
    return a;
}

/// a + k p.
INLINE Sum add_p(Sum a, int k) {
    EACH_GROUP(g)
        EACH_LIMB(i)
            if (i != 2) a.limb[g][i] = plus(a.limb[g][i], limb_of_p(i, k));
    return a;
}

INLINE Sum sum_of(const Digits *clean) {
    Sum r;
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = clean->limb[g][i];
    return r;
}

/// Carries. The sum is from 0 to 2^260 - 1.
INLINE Digits digits(Sum a) {
    Digits r;
    UNROLL(i, 0, LIMBS - 1)
        EACH_GROUP(g) a.limb[g][i + 1] = plus(a.limb[g][i + 1], carry_of(a.limb[g][i]));
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = a.limb[g][i];
    EACH_GROUP(g) KERNEL_CHECK(_mm512_cmpgt_epu64_mask(r.limb[g][LIMBS - 1], broadcast(LIMB_MASK)) == 0);
    return r;
}

/// The same value modulo p, from 0 to p + 2^225 h for a sum below h 2^256: takes the top limb's bits from 48 on
/// off, and p times as much. The sum is from 0 to 2^268 - 1.
INLINE Sum reduce_weakly(Sum a) {
    EACH_GROUP(g) {
        const lanes high = _mm512_srli_epi64(a.limb[g][4], 48);
        KERNEL_CHECK(_mm512_cmpgt_epu64_mask(high, broadcast(1 << 12)) == 0);
        a.limb[g][4] = plus(bit_and(a.limb[g][4], broadcast((1ull << 48) - 1)), _mm512_slli_epi64(high, 16));
        a.limb[g][0] = plus(a.limb[g][0], high);
        a.limb[g][1] = minus(a.limb[g][1], _mm512_slli_epi64(high, 44));
        a.limb[g][3] = minus(a.limb[g][3], _mm512_slli_epi64(high, 36));
    }
    return a;
}

/// Clean digits (all limbs but the top one below 2^52 as they stand) of the weakly reduced sum: from 0 to
/// p + 2^225 h, and below 2^256 when the sum is clean itself. The sum is as for `reduce_weakly`.
INLINE Digits clean_digits(Sum a) {
    Digits r = digits(reduce_weakly(a));
    UNROLL(i, 0, LIMBS - 1)
        EACH_GROUP(g) r.limb[g][i] = low_bits(r.limb[g][i]);
    return r;
}

// MARK: Products

/// t[i...i + 5] += a's limb i times b.
INLINE void multiply_row(lanes t[GROUPS][2 * LIMBS], const Digits *a, const Digits *b, int i) {
    UNROLL(j, 0, LIMBS)
        EACH_GROUP(g) t[g][i + j] = add_low(t[g][i + j], a->limb[g][i], b->limb[g][j]);
    UNROLL(j, 0, LIMBS)
        EACH_GROUP(g) t[g][i + j + 1] = add_high(t[g][i + j + 1], a->limb[g][i], b->limb[g][j]);
}

/// Takes limb i of t away: adds p times its low 52 bits (p is -1 modulo 2^52, so they are the Montgomery
/// factor themselves) and carries the rest. What the next step waits for takes shifts, which are quicker than
/// the multiplier.
INLINE void reduce_row(lanes t[GROUPS][2 * LIMBS], int i) {
    const lanes at96 = broadcast(1ull << 44), at192 = broadcast(1ull << 36);
    const lanes at256 = broadcast((1ull << 48) - (1ull << 16));
    EACH_GROUP(g) {
        const lanes factor = t[g][i];
        t[g][i + 1] = plus(
            t[g][i + 1], or_masked(_mm512_srli_epi64(factor, LIMB_BITS), _mm512_slli_epi64(factor, 44), LIMB_MASK));
        t[g][i + 2] = add_high(t[g][i + 2], factor, at96);
        t[g][i + 3] = add_low(t[g][i + 3], factor, at192);
        t[g][i + 4] = add_high(t[g][i + 4], factor, at192);
        t[g][i + 5] = add_high(t[g][i + 5], factor, at256);
        t[g][i + 4] = add_low(t[g][i + 4], factor, at256);
    }
}

INLINE void clear(lanes t[GROUPS][2 * LIMBS]) {
    EACH_GROUP(g)
        UNROLL(i, 0, 2 * LIMBS) t[g][i] = _mm512_setzero_si512();
}

INLINE Sum upper_half(lanes t[GROUPS][2 * LIMBS]) {
    Sum r;
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = t[g][LIMBS + i];
    return r;
}

INLINE Sum product(const Digits *a, const Digits *b) {
    lanes t[GROUPS][2 * LIMBS];
    clear(t);
    EACH_LIMB(i) {
        multiply_row(t, a, b, i);
        reduce_row(t, i);
    }
    return upper_half(t);
}

/// t = a * a, not reduced.
INLINE void square_into(lanes t[GROUPS][2 * LIMBS], const Digits *a) {
    clear(t);
    EACH_LIMB(i) {
        UNROLL(j, i + 1, LIMBS)
            EACH_GROUP(g) t[g][i + j] = add_low(t[g][i + j], a->limb[g][i], a->limb[g][j]);
        UNROLL(j, i + 1, LIMBS)
            EACH_GROUP(g) t[g][i + j + 1] = add_high(t[g][i + j + 1], a->limb[g][i], a->limb[g][j]);
    }
    UNROLL(i, 1, 2 * LIMBS - 1)
        EACH_GROUP(g) t[g][i] = plus(t[g][i], t[g][i]);
    EACH_LIMB(i)
        EACH_GROUP(g) {
            t[g][2 * i] = add_low(t[g][2 * i], a->limb[g][i], a->limb[g][i]);
            t[g][2 * i + 1] = add_high(t[g][2 * i + 1], a->limb[g][i], a->limb[g][i]);
        }
}

INLINE Sum square(const Digits *a) {
    lanes t[GROUPS][2 * LIMBS];
    square_into(t, a);
    EACH_LIMB(i) reduce_row(t, i);
    return upper_half(t);
}

/// a^2 + b c under one reduction; from 0 to ((a^2 + b c) / 16 + 1) p, which is to be below 32 p.
INLINE Sum square_plus_product(const Digits *a, const Digits *b, const Digits *c) {
    lanes t[GROUPS][2 * LIMBS];
    square_into(t, a);
    EACH_LIMB(i) {
        multiply_row(t, b, c, i);
        reduce_row(t, i);
    }
    return upper_half(t);
}

/// a b + c d under one reduction, with the same bound.
INLINE Sum product_plus_product(const Digits *a, const Digits *b, const Digits *c, const Digits *d) {
    lanes t[GROUPS][2 * LIMBS];
    clear(t);
    EACH_LIMB(i) {
        multiply_row(t, a, b, i);
        multiply_row(t, c, d, i);
        reduce_row(t, i);
    }
    return upper_half(t);
}

// MARK: Out of line

/// r = a b. `r` may be a or b.
NOINLINE void multiply(Digits *r, const Digits *a, const Digits *b) { *r = digits(product(a, b)); }
/// r = a^2. `r` may be a.
NOINLINE void square_digits(Digits *r, const Digits *a) { *r = digits(square(a)); }
/// r = a b, clean.
NOINLINE void multiply_clean(Digits *r, const Digits *a, const Digits *b) { *r = clean_digits(product(a, b)); }
/// r = a b, clean and below 2^256. (A clean product may be a little above: its top limb is looked at before the
/// carries.)
NOINLINE void multiply_below_256_bits(Digits *r, const Digits *a, const Digits *b) {
    Digits carried = digits(product(a, b));
    UNROLL(i, 0, LIMBS - 1)
        EACH_GROUP(g) carried.limb[g][i] = low_bits(carried.limb[g][i]);
    *r = clean_digits(sum_of(&carried));
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
    // The first reduction leaves less than p + 2^230, the second less than 2^256.
    *r = clean_digits(sum_of(&clean));
    *r = clean_digits(sum_of(r));
    EACH_GROUP(g) subtract_once(r->limb[g], P_LIMBS);
}

/// Lanes in which the digits are zero modulo p.
INLINE void is_zero(__mmask8 zero[GROUPS], const Digits *a) {
    Digits r;
    canonical(&r, a);
    EACH_GROUP(g) zero[g] = (__mmask8)~is_nonzero(r.limb[g]);
}
