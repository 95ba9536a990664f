// The field of a small curve, with the contract of p256/field.h: the same operations, in Montgomery form with radix
// 2^260, with the same bounds in multiples of p.
//
// A value stands in limb 0 alone, and a lane's arithmetic is that of plain integers. As in the real field, a value has
// several forms: sums are not reduced until they are weakly, digits are from 0 to 16 p, and a product that is 0 modulo
// p is p, not 0, unless a factor is 0. So a test for zero has to reduce here, too.
#pragma once

#include "../../Sources/CKernels/p256/bounds.h"
#include "../../Sources/CKernels/p256/limbs.h"
#include "../../Sources/CKernels/p256/modulus.h"

typedef struct {
    lanes limb[GROUPS][LIMBS];
} Sum;
typedef struct {
    lanes limb[GROUPS][LIMBS];
} Digits;

// MARK: Contracts

/// Limb 0 of every lane is from `low` p to `high` p.
INLINE void check_multiples(const lanes limb[GROUPS][LIMBS], double low, double high, const char *bound) {
    if (!KERNEL_CHECKS_ON) return;
    const double p = (double)P_LIMBS[0];
    EACH_GROUP(g) {
        int64_t value[LANES];
        store_signed(value, limb[g][0]);
        for (int l = 0; l < LANES; l++)
            kernel_check((double)value[l] >= low * p && (double)value[l] <= high * p, bound);
    }
}

// The formulas' lower bounds hold here up to p less: 1 in Montgomery form is small for P-256 only, and a product can be
// small here whatever its factors are. `digits` and `reduce_weakly` refuse what is negative.

INLINE void check_sum_range(const Sum *a, double low, double high, const char *bound) {
    check_multiples(a->limb, low - 1, high, bound);
}

INLINE void check_digits(const Digits *a, double low, double high, const char *bound) {
    check_multiples(a->limb, low - 1, high, bound);
}

INLINE void check_clean(const Digits *a, const char *bound) {
    EACH_GROUP(g) check_below_power(a->limb[g][0], LIMB_BITS, bound);
}

// MARK: Sums

INLINE Sum add(Sum a, Sum b) {
    EACH_GROUP(g) a.limb[g][0] = plus(a.limb[g][0], b.limb[g][0]);
    return a;
}

INLINE Sum subtract(Sum a, Sum b) {
    EACH_GROUP(g) a.limb[g][0] = minus(a.limb[g][0], b.limb[g][0]);
    return a;
}

INLINE Sum add_p(Sum a, int k) {
    EACH_GROUP(g) a.limb[g][0] = plus(a.limb[g][0], broadcast((uint64_t)k * P_LIMBS[0]));
    return a;
}

INLINE Sum sum_of(const Digits *clean) {
    Sum r;
    check_clean(clean, "sum of digits: of clean limbs");
    memcpy(&r, clean, sizeof r);
    return r;
}

INLINE Digits digits(Sum a) {
    Digits r;
    check_multiples(a.limb, 0, 16, "digits: from 0 to 16 p");
    memcpy(&r, &a, sizeof r);
    return r;
}

INLINE Digits product_digits(Sum a) { return digits(a); }

/// From 0 to p: p stays p.
INLINE Sum reduce_weakly(Sum a) {
    check_multiples(a.limb, 0, 4096, "weak reduction: from 0 to 4,096 p");
    EACH_GROUP(g)
        for (int l = 0; l < LANES; l++) {
            uint64_t *value = &a.limb[g][0].lane[l];
            if (*value > P_LIMBS[0]) *value = (*value - 1) % P_LIMBS[0] + 1;
        }
    return a;
}

INLINE Digits clean_digits(Sum a) { return digits(reduce_weakly(a)); }

// MARK: Products

/// (a b + c d) / 2^260, from 0 to p; 0 only when both products are. Other limbs than limb 0 count for nothing: only
/// lanes that are invalid anyway have some.
INLINE Sum sum_of_products(const Digits *a, const Digits *b, const Digits *c, const Digits *d) {
    const uint32_t p = (uint32_t)P_LIMBS[0];
    Sum r;
    memset(&r, 0, sizeof r);
    EACH_GROUP(g)
        for (int l = 0; l < LANES; l++) {
            uint32_t total = (uint32_t)a->limb[g][0].lane[l] * (uint32_t)b->limb[g][0].lane[l];
            if (c) total += (uint32_t)c->limb[g][0].lane[l] * (uint32_t)d->limb[g][0].lane[l];
            const uint32_t value = total % p * (uint32_t)P_RADIX_INVERSE % p;
            r.limb[g][0].lane[l] = value == 0 && total != 0 ? p : value;
        }
    return r;
}

INLINE Sum product(const Digits *a, const Digits *b) { return sum_of_products(a, b, 0, 0); }
INLINE Sum square(const Digits *a) { return sum_of_products(a, a, 0, 0); }
INLINE Sum square_plus_product(const Digits *a, const Digits *b, const Digits *c) {
    return sum_of_products(a, a, b, c);
}
INLINE Sum product_plus_product(const Digits *a, const Digits *b, const Digits *c, const Digits *d) {
    return sum_of_products(a, b, c, d);
}

NOINLINE void multiply(Digits *r, const Digits *a, const Digits *b) { *r = digits(product(a, b)); }
NOINLINE void square_digits(Digits *r, const Digits *a) { *r = digits(square(a)); }
NOINLINE void multiply_clean(Digits *r, const Digits *a, const Digits *b) { *r = digits(product(a, b)); }
NOINLINE void multiply_below_256_bits(Digits *r, const Digits *a, const Digits *b) { *r = digits(product(a, b)); }
NOINLINE void multiply_sum(Sum *r, const Digits *a, const Digits *b) { *r = product(a, b); }

INLINE Digits constant(const uint64_t limb[LIMBS]) {
    Digits r;
    EACH_GROUP(g)
        EACH_LIMB(i) r.limb[g][i] = broadcast(limb[i]);
    return r;
}

/// From 0 to p - 1. `r` may be a.
NOINLINE void canonical(Digits *r, const Digits *a) {
    *r = *a;
    EACH_GROUP(g)
        for (int l = 0; l < LANES; l++) r->limb[g][0].lane[l] %= P_LIMBS[0];
}

/// Lanes in which the digits are zero modulo p.
INLINE void is_zero(lane_mask zero[GROUPS], const Digits *a) {
    Digits r;
    canonical(&r, a);
    EACH_GROUP(g) zero[g] = ALL_LANES & ~nonzero_lanes(r.limb[g][0]);
}
