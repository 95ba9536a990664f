// Eight lanes in plain C as AVX-512 IFMA has them, which count the operations on whole vectors: the multiplier's, and
// the simple ones. Loads, stores and comparisons are not counted.
#pragma once

#include "include/KernelEmulation.h"

#define SHIFTS_ARE_QUICKER plain_shifts_are_quicker
#define add_low plain_add_low
#define add_high plain_add_high
#define plus plain_plus
#define minus plain_minus
#define bit_and plain_bit_and
#define bit_or plain_bit_or
#define shift_left plain_shift_left
#define shift_right plain_shift_right
#define carry_of plain_carry_of
#define insert_low plain_insert_low
#define choose plain_choose
#include "../../Sources/CKernels/p256/lanes/portable.h"
#undef SHIFTS_ARE_QUICKER
#undef add_low
#undef add_high
#undef plus
#undef minus
#undef bit_and
#undef bit_or
#undef shift_left
#undef shift_right
#undef carry_of
#undef insert_low
#undef choose

enum { SHIFTS_ARE_QUICKER = 0 };

#define COUNTED(kind, operation) (done.kind++, operation)
INLINE lanes add_low(lanes sum, factor a, factor b) { return COUNTED(multiply_adds, plain_add_low(sum, a, b)); }
INLINE lanes add_high(lanes sum, factor a, factor b) { return COUNTED(multiply_adds, plain_add_high(sum, a, b)); }
INLINE lanes plus(lanes a, lanes b) { return COUNTED(simple, plain_plus(a, b)); }
INLINE lanes minus(lanes a, lanes b) { return COUNTED(simple, plain_minus(a, b)); }
INLINE lanes bit_and(lanes a, lanes b) { return COUNTED(simple, plain_bit_and(a, b)); }
INLINE lanes bit_or(lanes a, lanes b) { return COUNTED(simple, plain_bit_or(a, b)); }
INLINE lanes shift_left(lanes a, int bits) { return COUNTED(simple, plain_shift_left(a, bits)); }
INLINE lanes shift_right(lanes a, int bits) { return COUNTED(simple, plain_shift_right(a, bits)); }
INLINE lanes carry_of(lanes limb) { return COUNTED(simple, plain_carry_of(limb)); }
INLINE lanes insert_low(lanes a, lanes b) { return COUNTED(simple, plain_insert_low(a, b)); }
INLINE lanes choose(lane_mask mask, lanes a, lanes b) { return COUNTED(simple, plain_choose(mask, a, b)); }
#undef COUNTED
