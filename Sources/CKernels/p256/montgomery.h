// Products modulo p or n for one group of lanes, for what a batch needs only a few times: scalars and inverses. So one
// code serves both primes and is not written for speed.
#pragma once

#ifndef CONSTANTS_FILE
/// The numbers of the curve. Tests run this code on small curves.
#define CONSTANTS_FILE "constants.h"
#endif
#include CONSTANTS_FILE
#include "lanes.h"
#include "limbs.h"

typedef struct {
    const uint64_t *limb, *word, *squared_radix, *cubed_radix;
    /// -1 / modulus mod 2^52.
    uint64_t factor;
} Modulus;

static const Modulus FIELD_PRIME = {P_LIMBS, P_WORDS, P_SQUARED_RADIX, P_CUBED_RADIX, P_FACTOR};
static const Modulus GROUP_ORDER = {N_LIMBS, N_WORDS, N_SQUARED_RADIX, N_CUBED_RADIX, N_FACTOR};

/// product = a * b / 2^260, below a * b / 2^260 + modulus, which is to be below 2^260, with clean limbs.
/// a and b: below 2^260, the low 52 bits of their limbs count. `product` may be either.
NOINLINE void montgomery(lanes product[LIMBS], const lanes a[LIMBS], const lanes b[LIMBS], const Modulus *modulus) {
    lanes t[2 * LIMBS];
    UNROLL(k, 0, 2 * LIMBS) t[k] = accumulator(k, 4);
    const factor inverse = factor_of(broadcast(modulus->factor));
    factor b_factor[LIMBS], m_factor[LIMBS];
    EACH_LIMB(j) b_factor[j] = factor_of(b[j]);
    EACH_LIMB(j) m_factor[j] = factor_of(broadcast(modulus->limb[j]));
    EACH_LIMB(i) {
        const factor a_factor = factor_of(a[i]);
        EACH_LIMB(j) t[i + j] = add_low(t[i + j], a_factor, b_factor[j]);
        EACH_LIMB(j) t[i + j + 1] = add_high(t[i + j + 1], a_factor, b_factor[j]);
        const factor digit = factor_of(add_low(zero_lanes(), factor_of(t[i]), inverse));
        EACH_LIMB(j) t[i + j] = add_low(t[i + j], digit, m_factor[j]);
        t[i + 1] = plus(t[i + 1], carry_of(t[i]));
        EACH_LIMB(j) t[i + j + 1] = add_high(t[i + j + 1], digit, m_factor[j]);
    }
    UNROLL(i, LIMBS, 2 * LIMBS - 1) {
        t[i + 1] = plus(t[i + 1], carry_of(t[i]));
        product[i - LIMBS] = low_bits(t[i]);
    }
    product[LIMBS - 1] = t[2 * LIMBS - 1];
    check_limbs(product, LIMB_BITS, "Montgomery product: below 2^260");
}

/// The clean limbs are below twice the modulus in all lanes.
INLINE void check_below_twice(const lanes limb[LIMBS], const Modulus *modulus, const char *bound) {
    if (!KERNEL_CHECKS_ON) return;
    lanes rest[LIMBS];
    EACH_LIMB(i) rest[i] = limb[i];
    subtract_once(rest, modulus->limb);
    kernel_check(is_below(rest, modulus->limb) == ALL_LANES, bound);
}
