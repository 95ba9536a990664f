// Eight lanes in the 512-bit vectors of AVX-512 F, BW, DQ and VL: all but the multiplier.
#pragma once

#include <immintrin.h>

typedef __m512i lanes;

#define PRODUCT INLINE

enum { LANES = 8, HAS_SIGNED_SHIFTS = 1 };

INLINE lanes broadcast(uint64_t value) { return _mm512_set1_epi64((long long)value); }
INLINE lanes plus(lanes a, lanes b) { return _mm512_add_epi64(a, b); }
INLINE lanes minus(lanes a, lanes b) { return _mm512_sub_epi64(a, b); }
INLINE lanes bit_and(lanes a, lanes b) { return _mm512_and_epi64(a, b); }
INLINE lanes bit_or(lanes a, lanes b) { return _mm512_or_epi64(a, b); }
INLINE lanes shift_left(lanes a, int bits) { return _mm512_sll_epi64(a, _mm_cvtsi32_si128(bits)); }
INLINE lanes shift_right(lanes a, int bits) { return _mm512_srl_epi64(a, _mm_cvtsi32_si128(bits)); }
INLINE lanes carry_of(lanes limb) { return _mm512_srai_epi64(limb, LIMB_BITS); }
INLINE lanes insert_low(lanes a, lanes b) { return _mm512_ternarylogic_epi64(a, b, broadcast(LIMB_MASK), 0xf8); }
INLINE lanes choose(lane_mask mask, lanes a, lanes b) { return _mm512_mask_mov_epi64(b, mask, a); }
INLINE lane_mask negative_lanes(lanes a) { return _mm512_movepi64_mask(a); }
INLINE lane_mask nonzero_lanes(lanes a) { return _mm512_test_epi64_mask(a, a); }

INLINE lanes load(const uint64_t *words) { return _mm512_loadu_si512(words); }
INLINE void store(uint64_t *words, lanes a) { _mm512_storeu_si512(words, a); }
INLINE uint64_t first_lane(lanes a) { return (uint64_t)_mm_cvtsi128_si64(_mm512_castsi512_si128(a)); }

INLINE lanes neighbour(lanes a, int distance) {
    return distance == 4 ? _mm512_shuffle_i64x2(a, a, 0x4e)
        : distance == 2  ? _mm512_shuffle_i64x2(a, a, 0xb1)
                         : _mm512_permutex_epi64(a, 0xb1);
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

INLINE void load_columns(lanes column[8], const uint64_t address[LANES]) {
    UNROLL(lane, 0, LANES) column[lane] = _mm512_load_si512((const void *)address[lane]);
    transpose(column);
}

INLINE void store_columns(uint64_t *const row_of_lane[LANES], const lanes column[8]) {
    lanes row[8];
    UNROLL(i, 0, 8) row[i] = column[i];
    transpose(row);
    UNROLL(lane, 0, LANES)
        if (row_of_lane[lane]) _mm512_store_si512(row_of_lane[lane], row[lane]);
}
