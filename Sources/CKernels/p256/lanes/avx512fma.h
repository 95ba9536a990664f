// Eight lanes for processors with AVX-512 F, BW, DQ and VL: the multiplier is that of doubles.
#pragma once

#include "avx512_vectors.h"

typedef __m512d reals;

INLINE reals reals_of(lanes bits) { return _mm512_castsi512_pd(bits); }
INLINE lanes bits_of(reals a) { return _mm512_castpd_si512(a); }
INLINE reals real(double value) { return _mm512_set1_pd(value); }
INLINE reals real_minus(reals a, reals b) { return _mm512_sub_pd(a, b); }
INLINE lanes insert_exponent(lanes limb) {
    // limb & LIMB_MASK | the exponent of 2^52
    return _mm512_ternarylogic_epi64(limb, broadcast(LIMB_MASK), broadcast(0x4330000000000000ull), 0xea);
}
INLINE reals fused_toward_zero(reals a, reals b, reals c) {
    return _mm512_fmadd_round_pd(a, b, c, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
INLINE reals fused_exact(reals a, reals b, reals c) { return _mm512_fmadd_pd(a, b, c); }

#include "doubles.h"

typedef int arithmetic;
INLINE arithmetic begin_arithmetic(void) { return 0; }
INLINE void end_arithmetic(arithmetic before) { (void)before; }
