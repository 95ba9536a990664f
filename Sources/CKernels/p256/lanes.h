// A lane holds one signature. A vector has LANES of them, and GROUPS vectors stand side by side.
//
// Two groups hide the latency of the multiplier; one group has half the working set and serves small batches.
// Everything in this folder is compiled once for each kernel, and all functions are static. The including file defines
//
// - GROUPS: 1 or 2.
// - LANES_FILE: one of the files in lanes/, which implements the lanes for one kind of processor.
//
// What every such file defines, besides LANES and the operations on whole vectors that are named alike:
//
//     lanes                             a vector of 64-bit integers, one for each lane
//     choose(m, a, b)                   the lanes of a where the mask m has a bit, those of b elsewhere; bits from
//     LANES
//                                       on count for nothing
//     negative_lanes, nonzero_lanes     the lanes whose number is negative, or not zero
//     carry_of(limb)                    what a limb that may be negative carries into the next: limb >> LIMB_BITS
//     insert_low(a, b)                  a | the low 52 bits of b, of a and b without common bits
//     neighbour(a, distance)            lane l gets what lane l ^ distance holds; distance: a power of 2 below LANES
//     load, store, first_lane           LANES words, which may stand at any address; and the word of lane 0
//     load_columns, store_columns       rows of eight words, one for each lane, as eight vectors; aligned to 64 bytes
//     factor factor_of(limb)            the low 52 bits of a limb as an operand of the multiplier
//     add_low(sum, a, b)                sum + the low 52 bits of a b + LOW_BIAS, of factors a and b
//     add_high(sum, a, b)               sum + bits 52 to 103 of a b + HIGH_BIAS
//     LOW_BIAS, HIGH_BIAS               multiples of 2^52 (`biased`)
//     SHIFTS_ARE_QUICKER                whether they are quicker than the multiplier where a factor is a power of 2;
//                                       if not, there are no biases
//     HAS_SIGNED_SHIFTS                 whether `carry_of` is one instruction
//     PRODUCT                           INLINE, or NOINLINE where products in every formula would be more code than the
//                                       processor keeps decoded
//     arithmetic begin_arithmetic()     puts the processor into the state that the multiplier needs,
//     end_arithmetic(arithmetic)        and back into the state before, but perhaps for flags of past exceptions
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if !defined(GROUPS) || !defined(LANES_FILE)
#error "define GROUPS and LANES_FILE before including the lanes"
#endif

#if !defined(PORTABLE_LANES) && !defined(SYMBOLIC_LANES)
/// Part of a formula. It is inlined into its caller, so that its values stay in registers.
#define INLINE static inline __attribute__((always_inline, unused))
/// A loop whose bounds the compiler knows, unrolled, so that arrays of vectors stay in registers.
#define UNROLL(index, first, end) _Pragma("clang loop unroll(full)") for (int index = (first); index < (end); index++)
#else
// Vectors of several lanes in plain C, and those that stand for all inputs, are for tests. Nothing stays in registers
// there, and this compiles faster.
#define INLINE static inline __attribute__((unused))
#define UNROLL(index, first, end) for (int index = (first); index < (end); index++)
#endif
/// A whole formula. It is not inlined: several formulas in one function need more registers than there are.
#define NOINLINE static __attribute__((noinline))

enum { LIMBS = 5, LIMB_BITS = 52 };
#define LIMB_MASK ((1ull << LIMB_BITS) - 1)

/// Bit l stands for lane l.
typedef uint8_t lane_mask;

#include LANES_FILE

enum {
    BLOCK = LANES * GROUPS,
    ALL_LANES = (1 << LANES) - 1,
    /// Words in a row of a table.
    ROW_WORDS = 8,
};

_Static_assert(LANES == 1 || LANES == 2 || LANES == 4 || LANES == 8, "a power of 2, and a bit of a mask for each");

#define EACH_GROUP(g) UNROLL(g, 0, GROUPS)
#define EACH_LIMB(i) UNROLL(i, 0, LIMBS)

INLINE lanes zero_lanes(void) { return broadcast(0); }
INLINE lanes low_bits(lanes limb) { return bit_and(limb, broadcast(LIMB_MASK)); }

/// Minus as many times LOW_BIAS / 2 and HIGH_BIAS / 2. A limb that begins with it is right when as many halves of
/// biases have been added to it. A limb that lacks a whole LOW_BIAS has the right low 52 bits already.
INLINE lanes biased(int low_halves, int high_halves) {
    return broadcast(0 - (uint64_t)low_halves * (LOW_BIAS / 2) - (uint64_t)high_halves * (HIGH_BIAS / 2));
}

/// Limb k of an accumulator that will receive as many products of five limbs by five as `halves` / 2.
INLINE lanes accumulator(int k, int halves) {
    const int lows = k < LIMBS ? k + 1 : 2 * LIMBS - 1 - k, highs = k <= LIMBS ? k : 2 * LIMBS - k;
    return biased(halves * lows, halves * highs);
}
