// Lanes in plain C, for every little-endian processor with 64 bits: one by default. The tests define PORTABLE_LANES as
// 8, so that they run the formulas of eight lanes on every processor.
#pragma once

#ifndef PORTABLE_LANES
#define PORTABLE_LANES 1
#endif

#define PRODUCT INLINE

enum { LANES = PORTABLE_LANES, HAS_SIGNED_SHIFTS = 1 };

typedef struct {
    uint64_t lane[LANES];
} lanes;

/// A vector whose lane l is `value`.
#define EACH_LANE(value)                                    \
    lanes result;                                           \
    UNROLL(l, 0, LANES) result.lane[l] = (uint64_t)(value); \
    return result

/// The mask of the lanes l for which `condition` holds.
#define LANES_WITH(condition)                                          \
    lane_mask mask = 0;                                                \
    UNROLL(l, 0, LANES) mask |= (lane_mask)((condition) ? 1 << l : 0); \
    return mask

INLINE lanes broadcast(uint64_t value) { EACH_LANE(value); }
INLINE lanes plus(lanes a, lanes b) { EACH_LANE(a.lane[l] + b.lane[l]); }
INLINE lanes minus(lanes a, lanes b) { EACH_LANE(a.lane[l] - b.lane[l]); }
INLINE lanes bit_and(lanes a, lanes b) { EACH_LANE(a.lane[l] & b.lane[l]); }
INLINE lanes bit_or(lanes a, lanes b) { EACH_LANE(a.lane[l] | b.lane[l]); }
INLINE lanes shift_left(lanes a, int bits) { EACH_LANE(a.lane[l] << bits); }
INLINE lanes shift_right(lanes a, int bits) { EACH_LANE(a.lane[l] >> bits); }
INLINE lanes carry_of(lanes limb) { EACH_LANE((int64_t)limb.lane[l] >> LIMB_BITS); }
INLINE lanes insert_low(lanes a, lanes b) { EACH_LANE(a.lane[l] | (b.lane[l] & LIMB_MASK)); }
INLINE lanes choose(lane_mask mask, lanes a, lanes b) { EACH_LANE(mask >> l & 1 ? a.lane[l] : b.lane[l]); }
INLINE lane_mask negative_lanes(lanes a) { LANES_WITH(a.lane[l] >> 63); }
INLINE lane_mask nonzero_lanes(lanes a) { LANES_WITH(a.lane[l] != 0); }

INLINE lanes load(const uint64_t *words) { EACH_LANE(words[l]); }
INLINE void store(uint64_t *words, lanes a) { memcpy(words, a.lane, sizeof a.lane); }
INLINE uint64_t first_lane(lanes a) { return a.lane[0]; }
INLINE lanes neighbour(lanes a, int distance) { EACH_LANE(a.lane[l ^ distance]); }

INLINE void load_columns(lanes column[8], const uint64_t address[LANES]) {
    UNROLL(word, 0, 8)
        UNROLL(l, 0, LANES) column[word].lane[l] = ((const uint64_t *)address[l])[word];
}

INLINE void store_columns(uint64_t *const row_of_lane[LANES], const lanes column[8]) {
    UNROLL(l, 0, LANES) {
        if (!row_of_lane[l]) continue;
        UNROLL(word, 0, 8) row_of_lane[l][word] = column[word].lane[l];
    }
}

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
#undef EACH_LANE
#undef LANES_WITH
