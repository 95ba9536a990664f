// Arithmetic modulo p or n for one group of lanes, for what a batch needs only a few times: scalars and inverses. So
// one code serves both primes and is not written for speed.
#pragma once

#ifndef CONSTANTS_FILE
/// The numbers of the curve. Tests run this code on small curves.
#define CONSTANTS_FILE "constants.h"
#endif
#include CONSTANTS_FILE
#include "inverse.h"
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

/// The numbers of the lanes at a distance, a power of 2 below LANES.
INLINE void neighbours(lanes neighbouring[LIMBS], const lanes limb[LIMBS], int distance) {
    EACH_LIMB(i) neighbouring[i] = neighbour(limb[i], distance);
}

/// The clean limbs are below twice the modulus in all lanes.
INLINE void check_below_twice(const lanes limb[LIMBS], const Modulus *modulus, const char *bound) {
    if (!KERNEL_CHECKS_ON) return;
    lanes rest[LIMBS];
    EACH_LIMB(i) rest[i] = limb[i];
    subtract_once(rest, modulus->limb);
    kernel_check(is_below(rest, modulus->limb) == ALL_LANES, bound);
}

/// x = 1 / x, both in Montgomery form; `x` below twice the modulus and clean. False, and x undefined, when
/// some lane is zero modulo the modulus.
///
/// One inversion serves all lanes: it inverts the product of the lanes. The product of a and b below 2 m is below
/// 4 m^2 / 2^260 + m < 2 m, so one subtraction of m leaves the product modulo m. The moduli are prime, so that is zero
/// exactly when the factor of some lane is.
NOINLINE int invert(lanes x[LIMBS], const Modulus *modulus) {
    // Each step multiplies lanes with their neighbours, at half the distance of the step before, so that every lane of
    // the last holds the product of all.
    enum { STEPS = LANES == 8 ? 3 : LANES == 4 ? 2 : LANES == 2 ? 1 : 0 };
    lanes product[STEPS + 1][LIMBS], other[LIMBS], inverse[LIMBS];
    check_below_twice(x, modulus, "inversion: of values below twice the modulus");
    EACH_LIMB(i) product[0][i] = x[i];
    UNROLL(step, 0, STEPS) {
        neighbours(other, product[step], LANES >> (step + 1));
        montgomery(product[step + 1], product[step], other, modulus);
    }
    lanes total[LIMBS], word[4];
    EACH_LIMB(i) total[i] = product[STEPS][i];
    subtract_once(total, modulus->limb);
    words_of_limbs(word, total);
    uint64_t value[4];
    UNROLL(i, 0, 4) value[i] = first_lane(word[i]);
    if ((value[0] | value[1] | value[2] | value[3]) == 0) return 0;
    uint64_t factor62 = 1;  // 1 / modulus mod 2^64 by Newton's iteration
    for (int i = 0; i < 6; i++) factor62 *= 2 - modulus->word[0] * factor62;
    modular_inverse(value, value, modulus->word, factor62 & (UINT64_MAX >> 2));
    UNROLL(i, 0, 4) word[i] = broadcast(value[i]);
    limbs_of_words(inverse, word);
    EACH_LIMB(i) other[i] = broadcast(modulus->cubed_radix[i]);
    montgomery(inverse, inverse, other, modulus);
    UNROLL(k, 0, STEPS) {
        const int step = STEPS - 1 - k;
        neighbours(other, product[step], LANES >> (step + 1));
        montgomery(inverse, inverse, other, modulus);
    }
    EACH_LIMB(i) x[i] = inverse[i];
    return 1;
}

/// The inverses of `count` vectors, at least one, in place and all in Montgomery form; `scratch`: as many.
/// False, and all of them undefined, when some lane of one of them is zero. A caller whose values can be zero replaces
/// those and calls again (`tree_repair`); the others say why theirs cannot.
NOINLINE int invert_many(lanes (*x)[LIMBS], int count, lanes (*scratch)[LIMBS], const Modulus *modulus) {
    memcpy(scratch[0], x[0], sizeof scratch[0]);
    for (int k = 1; k < count; k++) montgomery(scratch[k], scratch[k - 1], x[k], modulus);
    lanes inverse[LIMBS];
    memcpy(inverse, scratch[count - 1], sizeof inverse);
    if (!invert(inverse, modulus)) return 0;
    for (int k = count - 1; k > 0; k--) {
        lanes own[LIMBS];
        montgomery(own, inverse, scratch[k - 1], modulus);
        montgomery(inverse, inverse, x[k], modulus);
        memcpy(x[k], own, sizeof own);
    }
    memcpy(x[0], inverse, sizeof inverse);
    return 1;
}
