// The field of P-256, p = 2^256 - 2^224 + 2^192 + 2^96 - 1, in Montgomery form with radix 2^260: what the group's
// formulas call.
//
// Debug builds check every bound that is stated in sums.h, in products.h and in the files above this one (bounds.h).
// The tests prove them for all inputs.
#pragma once

#include "modulus.h"
#include "products.h"
#include "sums.h"

/// Clean digits of the weakly reduced sum, with the same bounds. They are below 2^256 when the sum has clean limbs and
/// is below 2 p, or p + 2^230: then either nothing is taken off, or p once.
INLINE Digits clean_digits(Sum a) {
    Digits r = digits(reduce_weakly(a));
    UNROLL(i, 0, LIMBS - 1)
        EACH_GROUP(g) r.limb[g][i] = low_bits(r.limb[g][i]);
    check_clean(&r, "clean digits: limbs from 0 to 2^52 - 1");
    return r;
}

/// r = a b. `r` may be a or b.
NOINLINE void multiply(Digits *r, const Digits *a, const Digits *b) { *r = product_digits(product(a, b)); }
/// r = a^2. `r` may be a.
NOINLINE void square_digits(Digits *r, const Digits *a) { *r = product_digits(square(a)); }
/// r = a b, clean.
NOINLINE void multiply_clean(Digits *r, const Digits *a, const Digits *b) { *r = clean_digits(product(a, b)); }
/// r = a b, clean and below 2^256. (A product has to be carried before it is reduced: the reduction looks at the top
/// limb alone.) a b is at most 1.6 p, so that the product is at most 1.1 p.
NOINLINE void multiply_below_256_bits(Digits *r, const Digits *a, const Digits *b) {
    Digits carried = product_digits(product(a, b));
    UNROLL(i, 0, LIMBS - 1)
        EACH_GROUP(g) carried.limb[g][i] = low_bits(carried.limb[g][i]);
    check_digits(&carried, 0, 1.1, "product below 256 bits: at most 1.1 p before it is reduced");
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
