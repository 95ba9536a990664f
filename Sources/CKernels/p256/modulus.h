// Arithmetic modulo either of the two primes for one group of lanes: what is needed a few times for a batch
// (scalars, inverses), so written for both at once and not for speed.
#pragma once

#include "constants.h"
#include "inverse.h"
#include "lanes.h"

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
}

/// x = 1 / x, both in Montgomery form; `x` below twice the modulus and clean. False, and x undefined, when
/// some lane is zero.
NOINLINE int invert(lanes x[LIMBS], const Modulus *modulus) {
    // Each step multiplies lanes with their neighbours at distance 4, 2 and 1, so that every lane of the last
    // holds the product of all.
    lanes product[4][LIMBS], neighbour[LIMBS], inverse[LIMBS];
    EACH_LIMB(i) product[0][i] = x[i];
    for (int step = 0; step < 3; step++) {
        EACH_LIMB(i)
            neighbour[i] = step == 0 ? _mm512_shuffle_i64x2(product[0][i], product[0][i], 0x4e)
                : step == 1          ? _mm512_shuffle_i64x2(product[1][i], product[1][i], 0xb1)
                                     : _mm512_permutex_epi64(product[2][i], 0xb1);
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
        EACH_LIMB(i)
            neighbour[i] = step == 0 ? _mm512_shuffle_i64x2(product[0][i], product[0][i], 0x4e)
                : step == 1          ? _mm512_shuffle_i64x2(product[1][i], product[1][i], 0xb1)
                                     : _mm512_permutex_epi64(product[2][i], 0xb1);
        montgomery(inverse, inverse, neighbour, modulus);
    }
    EACH_LIMB(i) x[i] = inverse[i];
    return 1;
}

/// The inverses of `count` vectors, at least one, in place and all in Montgomery form; `scratch`: as many.
/// None of them may be zero: the callers' values cannot be. (A zero leaves all of them undefined, and false.)
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
