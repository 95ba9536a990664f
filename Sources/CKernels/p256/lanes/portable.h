// Lanes in plain C: the multiplier is that of 64-bit integers.
#pragma once

#include "portable_vectors.h"

/// The low 52 bits of a limb, and the same times 2^12: then the product's upper word is its upper half.
typedef struct {
    lanes low, shifted;
} factor;

enum { LOW_BIAS = 0, HIGH_BIAS = 0, SHIFTS_ARE_QUICKER = 1 };

INLINE factor factor_of(lanes limb) {
    return (factor){bit_and(limb, broadcast(LIMB_MASK)), shift_left(limb, 64 - LIMB_BITS)};
}
#define SHIFTED_PRODUCT ((unsigned __int128)a.shifted.lane[l] * b.low.lane[l])
INLINE lanes add_low(lanes sum, factor a, factor b) {
    EACH_LANE(sum.lane[l] + ((uint64_t)SHIFTED_PRODUCT >> (64 - LIMB_BITS)));
}
INLINE lanes add_high(lanes sum, factor a, factor b) { EACH_LANE(sum.lane[l] + (uint64_t)(SHIFTED_PRODUCT >> 64)); }

typedef int arithmetic;
INLINE arithmetic begin_arithmetic(void) { return 0; }
INLINE void end_arithmetic(arithmetic before) { (void)before; }

#undef SHIFTED_PRODUCT
