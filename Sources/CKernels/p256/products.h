// Products of digits modulo p, divided by 2^260 (Montgomery).
//
// The product of a p and b p is from 0 to (a b / 16 + 1) p: the reduction adds m p with m < 2^260 and divides by 2^260,
// and p / 2^260 is a little less than 1 / 16. A limb of a product is the sum of at most 26 numbers below 2^52 (20 parts
// of two products, 6 parts of the reduction) and a carry, so it is below 2^57.
#pragma once

#include "sums.h"

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
