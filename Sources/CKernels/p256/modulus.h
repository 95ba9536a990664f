// Arithmetic modulo p or n for one group of lanes, for what a batch needs only a few times: scalars and inverses. So
// one code serves both primes and is not written for speed.
#pragma once

#include "constants.h"
#include "inverse.h"
#include "lanes.h"
#include "limbs.h"

typedef struct {
    const uint64_t *limb, *word, *squared_radix, *cubed_radix;
    /// -1 / modulus mod 2^52.
    uint64_t factor;
} Modulus;

static const Modulus FIELD_PRIME = {P_LIMBS, P_WORDS, P_SQUARED_RADIX, P_CUBED_RADIX, 1};
static const Modulus GROUP_ORDER = {N_LIMBS, N_WORDS, N_SQUARED_RADIX, N_CUBED_RADIX, N_FACTOR};

/// product = a * b / 2^260, below a * b / 2^260 + modulus, which is to be below 2^260, with clean limbs.
/// a and b: below 2^260, the low 52 bits of their limbs count. `product` may be either.
NOINLINE void montgomery(lanes product[LIMBS], const lanes a[LIMBS], const lanes b[LIMBS], const Modulus *modulus) {
    lanes t[2 * LIMBS];
    UNROLL(i, 0, 2 * LIMBS) t[i] = _mm512_setzero_si512();
    const lanes factor = broadcast(modulus->factor);
    EACH_LIMB(i) {
        UNROLL(j, 0, LIMBS) t[i + j] = add_low(t[i + j], a[i], b[j]);
        UNROLL(j, 0, LIMBS) t[i + j + 1] = add_high(t[i + j + 1], a[i], b[j]);
        const lanes digit = add_low(_mm512_setzero_si512(), t[i], factor);
        UNROLL(j, 0, LIMBS) t[i + j] = add_low(t[i + j], digit, broadcast(modulus->limb[j]));
        t[i + 1] = plus(t[i + 1], carry_of(t[i]));
        UNROLL(j, 0, LIMBS) t[i + j + 1] = add_high(t[i + j + 1], digit, broadcast(modulus->limb[j]));
    }
    UNROLL(i, LIMBS, 2 * LIMBS - 1) {
        t[i + 1] = plus(t[i + 1], carry_of(t[i]));
        product[i - LIMBS] = low_bits(t[i]);
    }
    product[LIMBS - 1] = t[2 * LIMBS - 1];
    check_limbs(product, LIMB_BITS, "Montgomery product: below 2^260");
}

/// The lanes at distance 4, 2 or 1, for step 0, 1 or 2.
INLINE void neighbours(lanes neighbour[LIMBS], const lanes limb[LIMBS], int step) {
    EACH_LIMB(i)
        neighbour[i] = step == 0 ? _mm512_shuffle_i64x2(limb[i], limb[i], 0x4e)
            : step == 1          ? _mm512_shuffle_i64x2(limb[i], limb[i], 0xb1)
                                 : _mm512_permutex_epi64(limb[i], 0xb1);
}

/// The clean limbs are below twice the modulus in all lanes.
INLINE void check_below_twice(const lanes limb[LIMBS], const Modulus *modulus, const char *bound) {
    if (!KERNEL_CHECKS_ON) return;
    lanes rest[LIMBS];
    EACH_LIMB(i) rest[i] = limb[i];
    subtract_once(rest, modulus->limb);
    kernel_check(is_below(rest, modulus->limb) == 0xff, bound);
}

/// x = 1 / x, both in Montgomery form; `x` below twice the modulus and clean. False, and x undefined, when
/// some lane is zero modulo the modulus.
///
/// One inversion serves all lanes: it inverts the product of the lanes. The product of a and b below 2 m is below
/// 4 m^2 / 2^260 + m < 2 m, so one subtraction of m leaves the product modulo m. The moduli are prime, so that is zero
/// exactly when the factor of some lane is.
NOINLINE int invert(lanes x[LIMBS], const Modulus *modulus) {
    // Each step multiplies lanes with their neighbours at distance 4, 2 and 1, so that every lane of the last
    // holds the product of all.
    lanes product[4][LIMBS], neighbour[LIMBS], inverse[LIMBS];
    check_below_twice(x, modulus, "inversion: of values below twice the modulus");
    EACH_LIMB(i) product[0][i] = x[i];
    for (int step = 0; step < 3; step++) {
        neighbours(neighbour, product[step], step);
        montgomery(product[step + 1], product[step], neighbour, modulus);
    }
    lanes total[LIMBS], word[4];
    EACH_LIMB(i) total[i] = product[3][i];
    subtract_once(total, modulus->limb);
    words_of_limbs(word, total);
    uint64_t value[4];
    UNROLL(i, 0, 4) value[i] = (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(word[i]));
    if ((value[0] | value[1] | value[2] | value[3]) == 0) return 0;
    uint64_t factor62 = 1;  // 1 / modulus mod 2^64 by Newton's iteration
    for (int i = 0; i < 6; i++) factor62 *= 2 - modulus->word[0] * factor62;
    modular_inverse(value, value, modulus->word, factor62 & (UINT64_MAX >> 2));
    UNROLL(i, 0, 4) word[i] = broadcast(value[i]);
    limbs_of_words(inverse, word);
    EACH_LIMB(i) neighbour[i] = broadcast(modulus->cubed_radix[i]);
    montgomery(inverse, inverse, neighbour, modulus);
    for (int step = 2; step >= 0; step--) {
        neighbours(neighbour, product[step], step);
        montgomery(inverse, inverse, neighbour, modulus);
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
