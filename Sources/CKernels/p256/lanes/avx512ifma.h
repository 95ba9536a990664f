// Eight lanes for processors with AVX-512 F, BW, DQ, VL and IFMA: the multiplier takes 52 bits of its operands itself.
#pragma once

#include "avx512_vectors.h"

typedef lanes factor;

enum { LOW_BIAS = 0, HIGH_BIAS = 0, SHIFTS_ARE_QUICKER = 0 };

INLINE factor factor_of(lanes limb) { return limb; }
INLINE lanes add_low(lanes sum, factor a, factor b) { return _mm512_madd52lo_epu64(sum, a, b); }
INLINE lanes add_high(lanes sum, factor a, factor b) { return _mm512_madd52hi_epu64(sum, a, b); }

typedef int arithmetic;
INLINE arithmetic begin_arithmetic(void) { return 0; }
INLINE void end_arithmetic(arithmetic before) { (void)before; }
