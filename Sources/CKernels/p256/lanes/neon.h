// Two lanes for 64-bit ARM processors: the multiplier is that of doubles.
#pragma once

#include <arm_neon.h>

typedef uint64x2_t lanes;

#define PRODUCT INLINE

enum { LANES = 2, HAS_SIGNED_SHIFTS = 1 };

INLINE lanes broadcast(uint64_t value) { return vdupq_n_u64(value); }
INLINE lanes plus(lanes a, lanes b) { return vaddq_u64(a, b); }
INLINE lanes minus(lanes a, lanes b) { return vsubq_u64(a, b); }
INLINE lanes bit_and(lanes a, lanes b) { return vandq_u64(a, b); }
INLINE lanes bit_or(lanes a, lanes b) { return vorrq_u64(a, b); }
INLINE lanes shift_left(lanes a, int bits) { return vshlq_u64(a, vdupq_n_s64(bits)); }
INLINE lanes shift_right(lanes a, int bits) { return vshlq_u64(a, vdupq_n_s64(-bits)); }
INLINE lanes carry_of(lanes limb) { return vreinterpretq_u64_s64(vshrq_n_s64(vreinterpretq_s64_u64(limb), LIMB_BITS)); }
INLINE lanes insert_low(lanes a, lanes b) { return bit_or(a, bit_and(b, broadcast(LIMB_MASK))); }
INLINE lanes choose(lane_mask mask, lanes a, lanes b) {
    const lanes bit = vcombine_u64(vcreate_u64(1), vcreate_u64(2));
    return vbslq_u64(vtstq_u64(broadcast(mask), bit), a, b);
}
INLINE lane_mask negative_lanes(lanes a) {
    return (lane_mask)(vgetq_lane_u64(a, 0) >> 63 | vgetq_lane_u64(a, 1) >> 63 << 1);
}
INLINE lane_mask nonzero_lanes(lanes a) { return negative_lanes(vtstq_u64(a, a)); }

INLINE lanes load(const uint64_t *words) { return vld1q_u64(words); }
INLINE void store(uint64_t *words, lanes a) { vst1q_u64(words, a); }
INLINE uint64_t first_lane(lanes a) { return vgetq_lane_u64(a, 0); }

INLINE lanes neighbour(lanes a, int distance) {
    (void)distance;
    return vextq_u64(a, a, 1);
}

INLINE void load_columns(lanes column[8], const uint64_t address[LANES]) {
    UNROLL(pair, 0, 4) {
        const lanes first = load((const uint64_t *)address[0] + 2 * pair);
        const lanes second = load((const uint64_t *)address[1] + 2 * pair);
        column[2 * pair] = vzip1q_u64(first, second);
        column[2 * pair + 1] = vzip2q_u64(first, second);
    }
}

INLINE void store_columns(uint64_t *const row_of_lane[LANES], const lanes column[8]) {
    UNROLL(pair, 0, 4) {
        const lanes even = column[2 * pair], odd = column[2 * pair + 1];
        if (row_of_lane[0]) store(row_of_lane[0] + 2 * pair, vzip1q_u64(even, odd));
        if (row_of_lane[1]) store(row_of_lane[1] + 2 * pair, vzip2q_u64(even, odd));
    }
}

typedef float64x2_t reals;

INLINE reals reals_of(lanes bits) { return vreinterpretq_f64_u64(bits); }
INLINE lanes bits_of(reals a) { return vreinterpretq_u64_f64(a); }
INLINE reals real(double value) { return vdupq_n_f64(value); }
INLINE reals real_minus(reals a, reals b) { return vsubq_f64(a, b); }
INLINE lanes insert_exponent(lanes limb) { return insert_low(broadcast(0x4330000000000000ull), limb); }
/// `begin_arithmetic` sets the rounding.
INLINE reals fused_toward_zero(reals a, reals b, reals c) { return vfmaq_f64(c, a, b); }
INLINE reals fused_exact(reals a, reals b, reals c) { return vfmaq_f64(c, a, b); }

#include "doubles.h"

/// The control register of floating point (FPCR). Bits 22 and 23 are the rounding mode; both are set for towards zero.
typedef uint64_t arithmetic;
INLINE arithmetic begin_arithmetic(void) {
    arithmetic before;
    __asm__ volatile("mrs %0, fpcr" : "=r"(before)::"memory");
    __asm__ volatile("msr fpcr, %0" ::"r"((uint64_t)3 << 22) : "memory");
    return before;
}
INLINE void end_arithmetic(arithmetic before) { __asm__ volatile("msr fpcr, %0" ::"r"(before) : "memory"); }
