// Checks of the limbs and of the value of one group of lanes, as contracts: each function aborts a debug build when
// some lane breaks the bound that it names. Values are compared in multiples of p, as doubles: an error of 2^-50 of
// the value is far below the room that the bounds leave. In release builds every function is empty.
#pragma once

#include "../kernel_checks.h"
#include "lanes.h"

/// More than the rounding error of a value below 4,096 p, and less than any bound's last decimal.
#define VALUE_TOLERANCE 0x1p-36

/// The value of limbs that may be negative, in multiples of p.
NOINLINE __m512d multiples_of_p(const lanes limb[LIMBS]) {
    __m512d value = _mm512_cvtepi64_pd(limb[LIMBS - 1]);
    for (int i = LIMBS - 2; i >= 0; i--)
        value = _mm512_fmadd_pd(value, _mm512_set1_pd(0x1p52), _mm512_cvtepi64_pd(limb[i]));
    // 1 / p, rounded: p is 2^256 (1 - 2^-32 + 2^-64 + ...).
    return _mm512_mul_pd(value, _mm512_set1_pd(0x1p-256 / (1 - 0x1p-32)));
}

/// The value of the low 52 bits of the limbs, in multiples of p.
NOINLINE __m512d multiples_of_p_in_low_bits(const lanes limb[LIMBS]) {
    lanes low[LIMBS];
    EACH_LIMB(i) low[i] = low_bits(limb[i]);
    return multiples_of_p(low);
}

/// All lanes are from `low` to `high`.
NOINLINE void check_range(__m512d value, __m512d low, __m512d high, const char *bound) {
    const __m512d tolerance = _mm512_set1_pd(VALUE_TOLERANCE);
    const __mmask8 below = _mm512_cmp_pd_mask(value, _mm512_sub_pd(low, tolerance), _CMP_LT_OQ);
    const __mmask8 above = _mm512_cmp_pd_mask(value, _mm512_add_pd(high, tolerance), _CMP_GT_OQ);
    kernel_check((below | above) == 0, bound);
}

/// The value of the limbs as they stand is from `low` p to `high` p.
INLINE void check_value(const lanes limb[LIMBS], double low, double high, const char *bound) {
    if (KERNEL_CHECKS_ON) check_range(multiples_of_p(limb), _mm512_set1_pd(low), _mm512_set1_pd(high), bound);
}

/// The value of the low 52 bits of the limbs is from `low` p to `high` p.
INLINE void check_low_bits(const lanes limb[LIMBS], double low, double high, const char *bound) {
    if (KERNEL_CHECKS_ON)
        check_range(multiples_of_p_in_low_bits(limb), _mm512_set1_pd(low), _mm512_set1_pd(high), bound);
}

/// No limb is negative, and none reaches 2^bits.
INLINE void check_limbs(const lanes limb[LIMBS], int bits, const char *bound) {
    if (!KERNEL_CHECKS_ON) return;
    lanes all = limb[0];
    for (int i = 1; i < LIMBS; i++) all = _mm512_or_epi64(all, limb[i]);
    kernel_check(_mm512_cmpge_epu64_mask(all, broadcast(1ull << bits)) == 0, bound);
}

/// All limbs are below 2^bits in magnitude.
INLINE void check_signed_limbs(const lanes limb[LIMBS], int bits, const char *bound) {
    if (!KERNEL_CHECKS_ON) return;
    for (int i = 0; i < LIMBS; i++)
        kernel_check(_mm512_cmpge_epu64_mask(_mm512_abs_epi64(limb[i]), broadcast(1ull << bits)) == 0, bound);
}

/// a b / 2^260, and c d / 2^260 where there are c and d, has been reduced to `product`.
NOINLINE void check_reduction(
    const lanes product[LIMBS], const lanes a[LIMBS], const lanes b[LIMBS], const lanes *c, const lanes *d) {
    __m512d quotient = _mm512_mul_pd(multiples_of_p_in_low_bits(a), multiples_of_p_in_low_bits(b));
    if (c) quotient = _mm512_fmadd_pd(multiples_of_p_in_low_bits(c), multiples_of_p_in_low_bits(d), quotient);
    quotient = _mm512_fmadd_pd(quotient, _mm512_set1_pd(1.0 / 16), _mm512_set1_pd(1));
    check_limbs(product, 57, "product: limbs below 2^57");
    check_range(multiples_of_p(product), _mm512_setzero_pd(), quotient, "product: from 0 to ((a b + c d) / 16 + 1) p");
}

/// Clean limbs of a value below 2^256.
INLINE void check_words(const lanes limb[LIMBS]) {
    check_limbs(limb, LIMB_BITS, "words: of clean limbs");
    if (KERNEL_CHECKS_ON)
        kernel_check(_mm512_cmpge_epu64_mask(limb[4], broadcast(1ull << 48)) == 0, "words: of a value below 2^256");
}
