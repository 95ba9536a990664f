// Other forms of the field's values: integers outside of Montgomery form, the words of a table's row, and what
// modulus.h inverts. This is for fields of limbs; forms_words.h has the same functions for words.
#pragma once

/// Clean digits in Montgomery form, of the integer below 2^256 whose limbs of 52 bits stand there.
INLINE void digits_of_integer(Digits *a) {
    const Digits radix = constant(P_SQUARED_RADIX);
    multiply_clean(a, a, &radix);
}

/// Lanes whose value is odd outside of Montgomery form.
INLINE void odd_values(lane_mask odd[GROUPS], const Digits *a) {
    static const uint64_t one[LIMBS] = {1};
    const Digits unit = constant(one);
    Digits plain;
    multiply(&plain, a, &unit);
    canonical(&plain, &plain);
    EACH_GROUP(g) odd[g] = nonzero_lanes(bit_and(plain.limb[g][0], broadcast(1)));
}

/// One group's coordinate, clean, of the words in a row (rows.h).
INLINE void coordinate_of_words(Digits *a, int g, const lanes word[4]) { limbs_of_words(a->limb[g], word); }

/// The reverse, of a clean coordinate below 2^256.
INLINE void words_of_coordinate(lanes word[4], const Digits *a, int g) { words_of_limbs(word, a->limb[g]); }

/// The residue modulo p in Montgomery form with radix 2^260, as `invert_many` takes it.
INLINE void residue_of_digits(lanes limb[GROUPS][LIMBS], const Digits *a) {
    Digits residue;
    canonical(&residue, a);
    memcpy(limb, &residue, sizeof residue);
}

/// Digits of what `invert_many` leaves.
INLINE void digits_of_residue(Digits *a, lanes limb[GROUPS][LIMBS]) { memcpy(a, limb, sizeof *a); }

/// Digits whose limbs have signs are from `low` p to `high` p.
INLINE void check_signed_digits(const Digits *a, double low, double high, const char *bound) {
    EACH_GROUP(g) check_value(a->limb[g], low, high, bound);
}
