// Eight signatures in the eight 64-bit lanes of a vector, GROUPS of those vectors side by side.
//
// Two groups hide the latency of the multiplier; one group has half the working set and serves small
// batches. Everything in this folder is compiled once for each: the including file defines GROUPS, and all
// functions are static.
//
// The tests also compile it with plain C in the place of the instructions, for processors that lack them. They define
// KERNEL_EMULATION, and with it the types and intrinsics that are used here.
#pragma once

#ifndef KERNEL_EMULATION
#include <immintrin.h>
#endif
#include <stddef.h>
#include <stdint.h>

#ifndef GROUPS
#error "define GROUPS as 1 or 2 before including the lanes"
#endif

typedef __m512i lanes;

enum { LANES = 8, BLOCK = LANES * GROUPS, LIMBS = 5, LIMB_BITS = 52 };

#ifndef KERNEL_EMULATION
/// Part of a formula. It is inlined into its caller, so that its values stay in registers.
#define INLINE static inline __attribute__((always_inline))
/// A loop whose bounds the compiler knows, unrolled, so that arrays of vectors stay in registers.
#define UNROLL(index, first, end) _Pragma("clang loop unroll(full)") for (int index = (first); index < (end); index++)
#else
// A lane at a time there are no vectors to keep in registers, and the rest compiles faster.
#define INLINE static inline __attribute__((unused))
#define UNROLL(index, first, end) for (int index = (first); index < (end); index++)
#endif
/// A whole formula. It is not inlined: several formulas in one function need more registers than there are.
#define NOINLINE static __attribute__((noinline))
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
