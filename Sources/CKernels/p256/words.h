// Words of 64 bits with carries, for the field of words (field_words.h): everything that it computes with them.
#pragma once

#include "lanes.h"

typedef unsigned long long word;

INLINE word word_of_number(uint64_t number) { return number; }
INLINE word word_in(lanes a) { return first_lane(a); }
INLINE lanes lane_with(word a) { return broadcast(a); }

/// a + b + carry, which becomes the sum's carry: 0 or 1.
INLINE word add_words(word a, word b, word *carry) { return __builtin_addcll(a, b, *carry, carry); }
/// a - b - borrow, which becomes the difference's borrow: 0 or 1.
INLINE word subtract_words(word a, word b, word *borrow) { return __builtin_subcll(a, b, *borrow, borrow); }
/// a + b and a - b, which are words.
INLINE word sum_of_words(word a, word b) { return a + b; }
INLINE word difference_of_words(word a, word b) { return a - b; }
/// The lower and the upper word of a b.
INLINE word multiply_words(word *high, word a, word b) {
    const unsigned __int128 product = (unsigned __int128)a * b;
    *high = (word)(product >> 64);
    return (word)product;
}
INLINE word shift_word_left(word a, int bits) { return a << bits; }
INLINE word shift_word_right(word a, int bits) { return a >> bits; }
INLINE word low_bits_of_word(word a, int bits) { return a & ((1ull << bits) - 1); }
/// a | b, of words without common bits.
INLINE word join_words(word a, word b) { return a | b; }
/// a if the condition, which is 0 or 1, is 1, and b if it is 0.
INLINE word choose_word(word condition, word a, word b) { return condition ? a : b; }
INLINE int is_zero_word(word a) { return a == 0; }
