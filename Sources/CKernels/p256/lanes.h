// Eight signatures in the eight 64-bit lanes of a vector, GROUPS of those vectors side by side.
//
// Two groups hide the latency of the multiplier; one group has half the working set and serves small
// batches. Everything in this folder is compiled once for each: the including file defines GROUPS, and all
// functions are static.
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "../kernel_checks.h"

#ifndef GROUPS
#error "define GROUPS as 1 or 2 before including the lanes"
#endif

typedef __m512i lanes;

enum { LANES = 8, BLOCK = LANES * GROUPS, LIMBS = 5, LIMB_BITS = 52 };

/// Part of a formula. It is inlined into its caller, so that its values stay in registers.
#define INLINE static inline __attribute__((always_inline))
/// A whole formula. It is not inlined: several formulas in one function need more registers than there are.
#define NOINLINE static __attribute__((noinline))
/// A loop whose bounds the compiler knows, unrolled, so that arrays of vectors stay in registers.
#define UNROLL(index, first, end) _Pragma("clang loop unroll(full)") for (int index = (first); index < (end); index++)
#define EACH_GROUP(g) UNROLL(g, 0, GROUPS)
#define EACH_LIMB(i) UNROLL(i, 0, LIMBS)

#define LIMB_MASK ((1ull << LIMB_BITS) - 1)

INLINE lanes broadcast(uint64_t value) { return _mm512_set1_epi64((long long)value); }
INLINE lanes plus(lanes a, lanes b) { return _mm512_add_epi64(a, b); }
INLINE lanes minus(lanes a, lanes b) { return _mm512_sub_epi64(a, b); }
INLINE lanes bit_and(lanes a, lanes b) { return _mm512_and_epi64(a, b); }
/// sum + the low 52 bits of a * b, of a and b the low 52 bits.
INLINE lanes add_low(lanes sum, lanes a, lanes b) { return _mm512_madd52lo_epu64(sum, a, b); }
/// sum + bits 52 to 103 of a * b, of a and b the low 52 bits.
INLINE lanes add_high(lanes sum, lanes a, lanes b) { return _mm512_madd52hi_epu64(sum, a, b); }
/// What a limb carries into the next, of a limb that may be negative.
INLINE lanes carry_of(lanes limb) { return _mm512_srai_epi64(limb, LIMB_BITS); }
/// a | b & mask.
INLINE lanes or_masked(lanes a, lanes b, uint64_t mask) {
    return _mm512_ternarylogic_epi64(a, b, broadcast(mask), 0xf8);
}
INLINE lanes low_bits(lanes limb) { return bit_and(limb, broadcast(LIMB_MASK)); }

/// Four 64-bit words, least significant first, as five limbs of 52 bits.
INLINE void limbs_of_words(lanes limb[LIMBS], const lanes word[4]) {
    limb[0] = low_bits(word[0]);
    limb[1] = or_masked(_mm512_srli_epi64(word[0], 52), _mm512_slli_epi64(word[1], 12), LIMB_MASK);
    limb[2] = or_masked(_mm512_srli_epi64(word[1], 40), _mm512_slli_epi64(word[2], 24), LIMB_MASK);
    limb[3] = or_masked(_mm512_srli_epi64(word[2], 28), _mm512_slli_epi64(word[3], 36), LIMB_MASK);
    limb[4] = _mm512_srli_epi64(word[3], 16);
}

/// The reverse, of clean limbs with a value below 2^256.
INLINE void words_of_limbs(lanes word[4], const lanes limb[LIMBS]) {
    KERNEL_CHECK(_mm512_cmpge_epu64_mask(limb[4], broadcast(1ull << 48)) == 0);
    word[0] = _mm512_or_epi64(limb[0], _mm512_slli_epi64(limb[1], 52));
    word[1] = _mm512_or_epi64(_mm512_srli_epi64(limb[1], 12), _mm512_slli_epi64(limb[2], 40));
    word[2] = _mm512_or_epi64(_mm512_srli_epi64(limb[2], 24), _mm512_slli_epi64(limb[3], 28));
    word[3] = _mm512_or_epi64(_mm512_srli_epi64(limb[3], 36), _mm512_slli_epi64(limb[4], 16));
}

/// The transpose of an 8 by 8 matrix of 64-bit words, in place: row i, word j becomes row j, word i.
INLINE void transpose(lanes row[8]) {
    lanes pair[8], quad[8];
    UNROLL(i, 0, 4) {
        pair[2 * i] = _mm512_unpacklo_epi64(row[2 * i], row[2 * i + 1]);
        pair[2 * i + 1] = _mm512_unpackhi_epi64(row[2 * i], row[2 * i + 1]);
    }
    // quad[0..3]: 128-bit blocks 0 2 of rows 0 1 and 2 3, then blocks 1 3; quad[4..7] the same of rows 4 to 7.
    UNROLL(half, 0, 2)
        UNROLL(odd, 0, 2) {
            quad[4 * half + odd] = _mm512_shuffle_i64x2(pair[4 * half + odd], pair[4 * half + 2 + odd], 0x88);
            quad[4 * half + 2 + odd] = _mm512_shuffle_i64x2(pair[4 * half + odd], pair[4 * half + 2 + odd], 0xdd);
        }
    UNROLL(odd, 0, 2) {
        row[0 + odd] = _mm512_shuffle_i64x2(quad[odd], quad[4 + odd], 0x88);
        row[4 + odd] = _mm512_shuffle_i64x2(quad[odd], quad[4 + odd], 0xdd);
        row[2 + odd] = _mm512_shuffle_i64x2(quad[2 + odd], quad[6 + odd], 0x88);
        row[6 + odd] = _mm512_shuffle_i64x2(quad[2 + odd], quad[6 + odd], 0xdd);
    }
}

/// Lanes in which the clean limbs are below `bound`.
INLINE __mmask8 is_below(const lanes limb[LIMBS], const uint64_t bound[LIMBS]) {
    lanes borrow = _mm512_setzero_si512();
    EACH_LIMB(i) borrow = carry_of(plus(minus(limb[i], broadcast(bound[i])), borrow));
    return _mm512_movepi64_mask(borrow);
}

/// Lanes in which some limb is not zero.
INLINE __mmask8 is_nonzero(const lanes limb[LIMBS]) {
    lanes any = limb[0];
    UNROLL(i, 1, LIMBS) any = _mm512_or_epi64(any, limb[i]);
    return _mm512_test_epi64_mask(any, any);
}

/// Clean limbs minus `bound` where they are not below it.
INLINE void subtract_once(lanes limb[LIMBS], const uint64_t bound[LIMBS]) {
    lanes difference[LIMBS], borrow = _mm512_setzero_si512();
    EACH_LIMB(i) {
        lanes d = plus(minus(limb[i], broadcast(bound[i])), borrow);
        borrow = carry_of(d);
        difference[i] = low_bits(d);
    }
    __mmask8 below = _mm512_movepi64_mask(borrow);
    EACH_LIMB(i) limb[i] = _mm512_mask_mov_epi64(difference[i], below, limb[i]);
}
