// Words that stand for all numbers at once, in the place of p256/words.h: a word is a form from 0 to 2^64 - 1.
#pragma once

#include "symbolic_lanes.h"

typedef Form word;

enum { WORD_BITS = 64 };

INLINE word word_of_number(uint64_t number) { return constant_form((Exact)number); }
INLINE word word_in(lanes a) { return a; }
INLINE lanes lane_with(word a) { return a; }

/// A word that the bounds say is one.
INLINE word as_word(word a, const char *what) {
    const Range bounds = range_of(&a);
    if (bounds.low < 0 || bounds.high >= power(WORD_BITS)) fail(what);
    return a;
}

INLINE word add_words(word a, word b, word *carry) {
    const word sum = plus(plus(a, b), *carry);
    word r;
    low_part(&r, &sum, WORD_BITS);
    upper_part(carry, &sum, WORD_BITS);
    return r;
}
INLINE word subtract_words(word a, word b, word *borrow) {
    const word difference = minus(minus(a, b), *borrow);
    word r;
    low_part(&r, &difference, WORD_BITS);
    upper_part(borrow, &difference, WORD_BITS);
    *borrow = minus(word_of_number(0), *borrow);
    return r;
}
INLINE word sum_of_words(word a, word b) { return as_word(plus(a, b), "a sum of words is a word"); }
INLINE word difference_of_words(word a, word b) { return as_word(minus(a, b), "a difference of words is a word"); }
INLINE word multiply_words(word *high, word a, word b) {
    const word product = product_of_forms(&a, &b);
    word r;
    low_part(&r, &product, WORD_BITS);
    upper_part(high, &product, WORD_BITS);
    return r;
}
INLINE word low_bits_of_word(word a, int bits) {
    low_part(&a, &a, bits);
    return a;
}
INLINE word shift_word_left(word a, int bits) { return low_bits_of_word(shift_left(a, bits), WORD_BITS); }
INLINE word shift_word_right(word a, int bits) { return shift_right(a, bits); }
INLINE word join_words(word a, word b) { return bit_or(a, b); }

/// Whether a word that is 0 or 1 is 1: what the bounds say, or else the script.
INLINE int is_one(const word *a) {
    const Range bounds = range_of(a);
    if (bounds.low < 0 || bounds.high > 1) fail("a condition is 0 or 1");
    if (bounds.low == bounds.high) return bounds.low == 1;
    const int decision = decide_mask();
    const word value = word_of_number((uint64_t)decision);
    Form zero;
    add_multiple(&zero, a, &value, -1);
    know(&zero);
    return decision;
}
INLINE word choose_word(word condition, word a, word b) { return is_one(&condition) ? a : b; }
INLINE int is_zero_word(word a) {
    const Range bounds = range_of(&a);
    // A word that may be 0 fails where it must not be.
    return bounds.low <= 0;
}
