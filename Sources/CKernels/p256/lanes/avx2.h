// Four lanes for processors with AVX2 and FMA: the multiplier is that of doubles.
#pragma once

#include <immintrin.h>

typedef __m256i lanes;

#define PRODUCT NOINLINE

enum { LANES = 4, HAS_SIGNED_SHIFTS = 0 };

INLINE lanes broadcast(uint64_t value) { return _mm256_set1_epi64x((long long)value); }
INLINE lanes plus(lanes a, lanes b) { return _mm256_add_epi64(a, b); }
INLINE lanes minus(lanes a, lanes b) { return _mm256_sub_epi64(a, b); }
INLINE lanes bit_and(lanes a, lanes b) { return _mm256_and_si256(a, b); }
INLINE lanes bit_or(lanes a, lanes b) { return _mm256_or_si256(a, b); }
INLINE lanes shift_left(lanes a, int bits) { return _mm256_sll_epi64(a, _mm_cvtsi32_si128(bits)); }
INLINE lanes shift_right(lanes a, int bits) { return _mm256_srl_epi64(a, _mm_cvtsi32_si128(bits)); }
/// There is no such shift. 2^63 more makes the limb positive.
INLINE lanes carry_of(lanes limb) {
    return minus(shift_right(plus(limb, broadcast(1ull << 63)), LIMB_BITS), broadcast(1ull << (63 - LIMB_BITS)));
}
INLINE lanes insert_low(lanes a, lanes b) { return bit_or(a, bit_and(b, broadcast(LIMB_MASK))); }
INLINE lanes choose(lane_mask mask, lanes a, lanes b) {
    const lanes bit = _mm256_setr_epi64x(1, 2, 4, 8);
    return _mm256_blendv_epi8(b, a, _mm256_cmpeq_epi64(bit_and(broadcast(mask), bit), bit));
}
INLINE lane_mask negative_lanes(lanes a) { return (lane_mask)_mm256_movemask_pd(_mm256_castsi256_pd(a)); }
INLINE lane_mask nonzero_lanes(lanes a) { return 0xf & ~negative_lanes(_mm256_cmpeq_epi64(a, _mm256_setzero_si256())); }

INLINE lanes load(const uint64_t *words) { return _mm256_loadu_si256((const __m256i *)words); }
INLINE void store(uint64_t *words, lanes a) { _mm256_storeu_si256((__m256i *)words, a); }
INLINE uint64_t first_lane(lanes a) { return (uint64_t)_mm_cvtsi128_si64(_mm256_castsi256_si128(a)); }

INLINE lanes neighbour(lanes a, int distance) {
    return distance == 2 ? _mm256_permute4x64_epi64(a, 0x4e) : _mm256_permute4x64_epi64(a, 0xb1);
}

/// The transpose of a 4 by 4 matrix of 64-bit words, in place: row i, word j becomes row j, word i.
INLINE void transpose(lanes row[4]) {
    const lanes even01 = _mm256_unpacklo_epi64(row[0], row[1]), odd01 = _mm256_unpackhi_epi64(row[0], row[1]);
    const lanes even23 = _mm256_unpacklo_epi64(row[2], row[3]), odd23 = _mm256_unpackhi_epi64(row[2], row[3]);
    row[0] = _mm256_permute2x128_si256(even01, even23, 0x20);
    row[1] = _mm256_permute2x128_si256(odd01, odd23, 0x20);
    row[2] = _mm256_permute2x128_si256(even01, even23, 0x31);
    row[3] = _mm256_permute2x128_si256(odd01, odd23, 0x31);
}

INLINE void load_columns(lanes column[8], const uint64_t address[LANES]) {
    UNROLL(half, 0, 2) {
        UNROLL(lane, 0, LANES) column[4 * half + lane] = load((const uint64_t *)address[lane] + 4 * half);
        transpose(column + 4 * half);
    }
}

INLINE void store_columns(uint64_t *const row_of_lane[LANES], const lanes column[8]) {
    UNROLL(half, 0, 2) {
        lanes row[4];
        UNROLL(i, 0, 4) row[i] = column[4 * half + i];
        transpose(row);
        UNROLL(lane, 0, LANES)
            if (row_of_lane[lane]) store(row_of_lane[lane] + 4 * half, row[lane]);
    }
}

typedef __m256d reals;

INLINE reals reals_of(lanes bits) { return _mm256_castsi256_pd(bits); }
INLINE lanes bits_of(reals a) { return _mm256_castpd_si256(a); }
INLINE reals real(double value) { return _mm256_set1_pd(value); }
INLINE reals real_minus(reals a, reals b) { return _mm256_sub_pd(a, b); }
INLINE lanes insert_exponent(lanes limb) { return insert_low(broadcast(0x4330000000000000ull), limb); }
/// `begin_arithmetic` sets the rounding.
INLINE reals fused_toward_zero(reals a, reals b, reals c) { return _mm256_fmadd_pd(a, b, c); }
INLINE reals fused_exact(reals a, reals b, reals c) { return _mm256_fmadd_pd(a, b, c); }

#include "doubles.h"

/// The control register of the vectors.
typedef unsigned arithmetic;
INLINE arithmetic begin_arithmetic(void) {
    const arithmetic before = _mm_getcsr();
    _mm_setcsr(_MM_MASK_MASK | _MM_ROUND_TOWARD_ZERO);
    return before;
}
INLINE void end_arithmetic(arithmetic before) { _mm_setcsr(before); }
