// Vectors in plain C, for every little-endian processor with 64 bits: all but the multiplier. A vector has one lane by
// default. The tests define PORTABLE_LANES as 8 or 4, so that they run the formulas of so many lanes on every
// processor, and PORTABLE_SIGNED_SHIFTS as 0 for those of processors without them.
#pragma once

#ifndef PORTABLE_LANES
#define PORTABLE_LANES 1
#endif

#ifndef PORTABLE_SIGNED_SHIFTS
#define PORTABLE_SIGNED_SHIFTS 1
#endif

#define PRODUCT INLINE

enum { LANES = PORTABLE_LANES, HAS_SIGNED_SHIFTS = PORTABLE_SIGNED_SHIFTS };

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
