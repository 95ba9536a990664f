// Sums and digits: the two kinds of values of the field of P-256, and what is cheap to do with them.
//
// A value is five limbs of weight 2^(52 i):
//
// - Sum: limbs are signed 64-bit integers below 2^60 in magnitude. Sums are added and subtracted limb by limb.
// - Digits: the operands of the multiplier. Only the low 52 bits of each limb count, and the value of those bits
//   is from 0 to 2^260 - 1, a little more than 16 p. `digits` carries a sum. It does not mask the upper bits,
//   because `factor_of` or the multiplier ignores them. Digits whose upper bits are zero are clean.
//
// Bounds are stated in multiples of p.
#pragma once

#include "bounds.h"
#include "constants.h"
#include "lanes.h"
#include "limbs.h"

typedef struct {
    lanes limb[GROUPS][LIMBS];
} Sum;
typedef struct {
    lanes limb[GROUPS][LIMBS];
} Digits;

/// Limb i of k p, in the sparse form that has negative limbs: (-k, k 2^44, 0, k 2^36, k (2^48 - 2^16)).
INLINE lanes limb_of_p(int i, int64_t k) {
    const int64_t limb[LIMBS] = {-k, k * (1ll << 44), 0, k * (1ll << 36), k * ((1ll << 48) - (1ll << 16))};
    return broadcast((uint64_t)limb[i]);
}

// MARK: Contracts

/// Limbs of a sum are below 2^60 in magnitude.
INLINE void check_sum(const Sum *a) {
    EACH_GROUP(g) check_signed_limbs(a->limb[g], 60, "sum: limbs below 2^60 in magnitude");
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

/// Carried limbs as digits.
INLINE Digits carried_digits(const Sum *a) {
    Digits r;
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = a->limb[g][i];
    EACH_GROUP(g) check_below_power(r.limb[g][4], LIMB_BITS, "digits: from 0 to 2^260 - 1");
    return r;
}

/// Carries. The sum is from 0 to 2^260 - 1.
INLINE Digits digits(Sum a) {
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
    return carried_digits(&a);
}

/// Carries of a product, whose limbs are not negative. The product is from 0 to 2^260 - 1.
INLINE Digits product_digits(Sum a) {
    UNROLL(i, 0, LIMBS - 1)
        EACH_GROUP(g) a.limb[g][i + 1] = plus(a.limb[g][i + 1], shift_right(a.limb[g][i], LIMB_BITS));
    return carried_digits(&a);
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
