// Checks of the limbs and of the value of one group of lanes, as contracts: each function aborts a debug build when
// some lane breaks the bound that it names. Values are compared in multiples of p, as doubles: an error of 2^-50 of
// the value is far below the room that the bounds leave. In release builds every function is empty.
#pragma once

#include "../kernel_checks.h"
#include "lanes.h"

/// More than the rounding error of a value below 4,096 p, and less than any bound's last decimal.
#define VALUE_TOLERANCE 0x1p-36

/// A number for each lane.
typedef struct {
    double lane[LANES];
} Values;

INLINE Values all_lanes(double value) {
    Values r;
    for (int l = 0; l < LANES; l++) r.lane[l] = value;
    return r;
}

/// A signed limb of every lane.
INLINE void store_signed(int64_t word[LANES], lanes limb) {
    uint64_t bits[LANES];
    store(bits, limb);
    memcpy(word, bits, sizeof bits);
}

/// The value of limbs that may be negative, in multiples of p.
NOINLINE Values multiples_of_p(const lanes limb[LIMBS]) {
    Values r = all_lanes(0);
    for (int i = LIMBS - 1; i >= 0; i--) {
        int64_t word[LANES];
        store_signed(word, limb[i]);
        for (int l = 0; l < LANES; l++) r.lane[l] = r.lane[l] * 0x1p52 + (double)word[l];
    }
    // 1 / p, rounded: p is 2^256 (1 - 2^-32 + 2^-64 + ...).
    for (int l = 0; l < LANES; l++) r.lane[l] *= 0x1p-256 / (1 - 0x1p-32);
    return r;
}

/// The value of the low 52 bits of the limbs, in multiples of p.
NOINLINE Values multiples_of_p_in_low_bits(const lanes limb[LIMBS]) {
    lanes low[LIMBS];
    EACH_LIMB(i) low[i] = low_bits(limb[i]);
    return multiples_of_p(low);
}

/// All lanes are from `low` to `high`.
NOINLINE void check_range(Values value, Values low, Values high, const char *bound) {
    int holds = 1;
    for (int l = 0; l < LANES; l++)
        holds &= value.lane[l] >= low.lane[l] - VALUE_TOLERANCE && value.lane[l] <= high.lane[l] + VALUE_TOLERANCE;
    kernel_check(holds, bound);
}

/// The value of the limbs as they stand is from `low` p to `high` p.
INLINE void check_value(const lanes limb[LIMBS], double low, double high, const char *bound) {
    if (KERNEL_CHECKS_ON) check_range(multiples_of_p(limb), all_lanes(low), all_lanes(high), bound);
}

/// The value of the low 52 bits of the limbs is from `low` p to `high` p.
INLINE void check_low_bits(const lanes limb[LIMBS], double low, double high, const char *bound) {
    if (KERNEL_CHECKS_ON) check_range(multiples_of_p_in_low_bits(limb), all_lanes(low), all_lanes(high), bound);
}

/// No number is negative, and none reaches 2^bits.
INLINE void check_below_power(lanes number, int bits, const char *bound) {
    if (!KERNEL_CHECKS_ON) return;
    kernel_check(nonzero_lanes(shift_right(number, bits)) == 0, bound);
}

/// No limb is negative, and none reaches 2^bits.
INLINE void check_limbs(const lanes limb[LIMBS], int bits, const char *bound) {
    if (!KERNEL_CHECKS_ON) return;
    lanes all = limb[0];
    for (int i = 1; i < LIMBS; i++) all = bit_or(all, limb[i]);
    check_below_power(all, bits, bound);
}

/// All limbs are below 2^bits in magnitude.
INLINE void check_signed_limbs(const lanes limb[LIMBS], int bits, const char *bound) {
    if (!KERNEL_CHECKS_ON) return;
    for (int i = 0; i < LIMBS; i++) {
        int64_t word[LANES];
        store_signed(word, limb[i]);
        for (int l = 0; l < LANES; l++) kernel_check(word[l] < 1ll << bits && word[l] > -(1ll << bits), bound);
    }
}

/// a b / 2^260, and c d / 2^260 where there are c and d, has been reduced to `product`.
NOINLINE void check_reduction(
    const lanes product[LIMBS], const lanes a[LIMBS], const lanes b[LIMBS], const lanes *c, const lanes *d) {
    const Values av = multiples_of_p_in_low_bits(a), bv = multiples_of_p_in_low_bits(b);
    const Values cv = c ? multiples_of_p_in_low_bits(c) : all_lanes(0);
    const Values dv = d ? multiples_of_p_in_low_bits(d) : all_lanes(0);
    Values quotient;
    for (int l = 0; l < LANES; l++) quotient.lane[l] = (av.lane[l] * bv.lane[l] + cv.lane[l] * dv.lane[l]) / 16 + 1;
    check_limbs(product, 57, "product: limbs below 2^57");
    check_range(multiples_of_p(product), all_lanes(0), quotient, "product: from 0 to ((a b + c d) / 16 + 1) p");
}

/// A weak reduction has left at most p + 2^225 (h + 1), of what stood above the low 48 bits of the top limb.
NOINLINE void check_weak_reduction(const lanes reduced[LIMBS], lanes h) {
    Values most;
    int64_t word[LANES];
    store_signed(word, h);
    for (int l = 0; l < LANES; l++) most.lane[l] = 1 + 0x1p-31 * ((double)word[l] + 1);
    check_range(multiples_of_p(reduced), all_lanes(0), most, "weak reduction: to p + 2^225 (h + 1)");
}

/// Clean limbs of a value below 2^256.
INLINE void check_words(const lanes limb[LIMBS]) {
    check_limbs(limb, LIMB_BITS, "words: of clean limbs");
    check_below_power(limb[4], 48, "words: of a value below 2^256");
}
