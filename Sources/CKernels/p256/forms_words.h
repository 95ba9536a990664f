// The functions of forms.h for the field of words. Rows and residues keep radix 2^260, so that this kernel can use
// the tables of the others.
#pragma once

INLINE void digits_of_integer(Digits *a) {
    word w[4];
    words_from_limbs(w, a->limb[0]);
    // 2^512, the square of the radix: `constant` turns 2^520 into 2^516.
    const Digits radix = constant(P_SQUARED_RADIX);
    word radix_words[4];
    EACH_WORD(i) radix_words[i] = word_of(&radix, i);
    const Digits integer = digits_of_words(w), squared_radix = sixteenth(radix_words);
    multiply(a, &integer, &squared_radix);
}

INLINE void odd_values(lane_mask odd[GROUPS], const Digits *a) {
    word one[4];
    EACH_WORD(i) one[i] = word_of_number(i == 0);
    const Digits unit = digits_of_words(one);
    Digits plain;
    multiply(&plain, a, &unit);
    odd[0] = !is_zero_word(low_bits_of_word(word_of(&plain, 0), 1));
}

INLINE void coordinate_of_words(Digits *a, int g, const lanes words[4]) {
    word w[4];
    EACH_WORD(i) w[i] = word_in(words[i]);
    (void)g;
    *a = sixteenth(w);
}

INLINE void words_of_coordinate(lanes words[4], const Digits *a, int g) {
    Sum sixteenfold = *a;
    UNROLL(i, 0, 4) sixteenfold = add(sixteenfold, sixteenfold);
    EACH_WORD(i) words[i] = sixteenfold.limb[g][i];
}

INLINE void residue_of_digits(lanes limb[GROUPS][LIMBS], const Digits *a) {
    lanes words[4];
    words_of_coordinate(words, a, 0);
    limbs_of_words(limb[0], words);
}

/// An inverse is below 2 p.
INLINE void digits_of_residue(Digits *a, lanes limb[GROUPS][LIMBS]) {
    word w[4];
    subtract_once(limb[0], P_LIMBS);
    words_from_limbs(w, limb[0]);
    *a = sixteenth(w);
}

INLINE void check_signed_digits(const Digits *a, double low, double high, const char *bound) {
    check_digits(a, low, high, bound);
}
