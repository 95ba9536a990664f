// Numbers of 256 and 260 bits as five limbs of 52 bits, for one group of lanes: from words and back, comparisons.
//
// Limbs are clean when each of them is from 0 to 2^52 - 1. Only then do they say by themselves what the number is.
#pragma once

#include <string.h>

#include "bounds.h"
#include "lanes.h"

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
    check_words(limb);
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
    check_limbs(limb, LIMB_BITS, "comparison: of clean limbs");
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
    check_limbs(limb, LIMB_BITS, "subtraction of a modulus: from clean limbs");
    lanes difference[LIMBS], borrow = _mm512_setzero_si512();
    EACH_LIMB(i) {
        lanes d = plus(minus(limb[i], broadcast(bound[i])), borrow);
        borrow = carry_of(d);
        difference[i] = low_bits(d);
    }
    __mmask8 below = _mm512_movepi64_mask(borrow);
    EACH_LIMB(i) limb[i] = _mm512_mask_mov_epi64(difference[i], below, limb[i]);
}
