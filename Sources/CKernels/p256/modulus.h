// Inverses modulo p or n for one group of lanes or many: a single inversion serves all lanes.
#pragma once

#include "inverse.h"
#include "montgomery.h"

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
