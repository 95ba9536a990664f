// Values of the field of words: numbers below p in four words of 64 bits (field_words.h).
#pragma once

#include "bounds.h"
#include "constants.h"
#include "lanes.h"
#ifndef WORDS_FILE
/// What is computed with words. The proofs of bounds have words that stand for all numbers.
#define WORDS_FILE "words.h"
#endif
#include WORDS_FILE

_Static_assert(LANES == 1 && GROUPS == 1, "a single lane");

typedef struct {
    lanes limb[GROUPS][LIMBS];
} Digits;
typedef Digits Sum;

#define EACH_WORD(i) UNROLL(i, 0, 4)

INLINE word word_of(const Digits *a, int i) { return word_in(a->limb[0][i]); }

INLINE Digits digits_of_words(const word words[4]) {
    Digits r;
    EACH_WORD(i) r.limb[0][i] = lane_with(words[i]);
    r.limb[0][4] = zero_lanes();
    return r;
}

/// Word i of p.
INLINE word word_of_p(int i) { return word_of_number(P_WORDS[i]); }

// MARK: Contracts

INLINE void check_value_of_words(const Digits *a) {
    if (!KERNEL_CHECKS_ON) return;
    word borrow = word_of_number(0);
    EACH_WORD(i) { (void)subtract_words(word_of(a, i), word_of_p(i), &borrow); }
    kernel_check(!is_zero_word(borrow), "value of words: below p");
}

/// The value of five words that are below 2 p.
INLINE Sum without_prime(const word t[5]) {
    word less[4], borrow = word_of_number(0);
    EACH_WORD(i) less[i] = subtract_words(t[i], word_of_p(i), &borrow);
    (void)subtract_words(t[4], word_of_number(0), &borrow);
    EACH_WORD(i) less[i] = choose_word(borrow, t[i], less[i]);
    const Sum r = digits_of_words(less);
    check_value_of_words(&r);
    return r;
}
