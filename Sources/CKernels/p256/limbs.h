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
    limb[1] = insert_low(shift_right(word[0], 52), shift_left(word[1], 12));
    limb[2] = insert_low(shift_right(word[1], 40), shift_left(word[2], 24));
    limb[3] = insert_low(shift_right(word[2], 28), shift_left(word[3], 36));
    limb[4] = shift_right(word[3], 16);
}

/// The reverse, of clean limbs with a value below 2^256.
INLINE void words_of_limbs(lanes word[4], const lanes limb[LIMBS]) {
    check_words(limb);
    word[0] = bit_or(limb[0], shift_left(limb[1], 52));
    word[1] = bit_or(shift_right(limb[1], 12), shift_left(limb[2], 40));
    word[2] = bit_or(shift_right(limb[2], 24), shift_left(limb[3], 28));
    word[3] = bit_or(shift_right(limb[3], 36), shift_left(limb[4], 16));
}

/// Lanes in which the clean limbs are below `bound`.
INLINE lane_mask is_below(const lanes limb[LIMBS], const uint64_t bound[LIMBS]) {
    check_limbs(limb, LIMB_BITS, "comparison: of clean limbs");
    lanes borrow = zero_lanes();
    EACH_LIMB(i) borrow = carry_of(plus(minus(limb[i], broadcast(bound[i])), borrow));
    return negative_lanes(borrow);
}

/// Lanes in which some limb is not zero.
INLINE lane_mask is_nonzero(const lanes limb[LIMBS]) {
    lanes any = limb[0];
    UNROLL(i, 1, LIMBS) any = bit_or(any, limb[i]);
    return nonzero_lanes(any);
}

/// The limbs of a in the lanes of the mask, those of b elsewhere. `r` may be either.
INLINE void choose_limbs(lanes r[LIMBS], lane_mask mask, const lanes a[LIMBS], const lanes b[LIMBS]) {
    EACH_LIMB(i) r[i] = choose(mask, a[i], b[i]);
}

/// bound - limb, of clean limbs whose value is at most the bound; clean.
INLINE void subtract_from(lanes r[LIMBS], const uint64_t bound[LIMBS], const lanes limb[LIMBS]) {
    lanes borrow = zero_lanes();
    EACH_LIMB(i) {
        const lanes d = plus(minus(broadcast(bound[i]), limb[i]), borrow);
        borrow = carry_of(d);
        r[i] = low_bits(d);
    }
}

/// Clean limbs minus `bound` where they are not below it.
INLINE void subtract_once(lanes limb[LIMBS], const uint64_t bound[LIMBS]) {
    check_limbs(limb, LIMB_BITS, "subtraction of a modulus: from clean limbs");
    lanes difference[LIMBS], borrow = zero_lanes();
    EACH_LIMB(i) {
        lanes d = plus(minus(limb[i], broadcast(bound[i])), borrow);
        borrow = carry_of(d);
        difference[i] = low_bits(d);
    }
    const lane_mask below = negative_lanes(borrow);
    choose_limbs(limb, below, limb, difference);
}

/// The numbers of the lanes at a distance, a power of 2 below LANES.
INLINE void neighbours(lanes neighbouring[LIMBS], const lanes limb[LIMBS], int distance) {
    EACH_LIMB(i) neighbouring[i] = neighbour(limb[i], distance);
}
