// The field of P-256 for a single lane: the operations of field.h on four words of 64 bits, for processors whose
// multiplier takes words. A product of words is 16 multiplications, and one of limbs is 25.
//
// Every value is below p (value_words.h) and in Montgomery form with radix 2^256. So a sum and its digits are the same,
// nothing is reduced weakly, and a multiple of p that keeps a difference positive (`add_p`) changes nothing. The ranges
// that formulas state in multiples of p are those of field.h; here debug builds check that every value is below p.
//
// The words stand in limbs 0 to 3. Limb 4 is zero.
#pragma once

// Of the checks, those of products of limbs are not needed.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wunused-function"
#include "bounds.h"
#pragma clang diagnostic pop
#include "constants.h"
#include "lanes.h"
#include "limbs.h"
#include "modulus.h"
#include "value_words.h"

/// What a value of the field is besides a number modulo p.
#define FORMS_FILE "forms_words.h"

INLINE void check_sum_range(const Sum *a, double low, double high, const char *bound) {
    (void)low, (void)high, (void)bound;
    check_value_of_words(a);
}
INLINE void check_digits(const Digits *a, double low, double high, const char *bound) {
    (void)low, (void)high, (void)bound;
    check_value_of_words(a);
}
INLINE void check_clean(const Digits *a, const char *bound) {
    (void)bound;
    check_value_of_words(a);
}

// MARK: Sums

INLINE Sum add(Sum a, Sum b) {
    word t[5], carry = word_of_number(0);
    EACH_WORD(i) t[i] = add_words(word_of(&a, i), word_of(&b, i), &carry);
    t[4] = carry;
    return without_prime(t);
}

INLINE Sum subtract(Sum a, Sum b) {
    word t[4], borrow = word_of_number(0), carry = word_of_number(0);
    EACH_WORD(i) t[i] = subtract_words(word_of(&a, i), word_of(&b, i), &borrow);
    EACH_WORD(i) t[i] = add_words(t[i], choose_word(borrow, word_of_p(i), word_of_number(0)), &carry);
    const Sum r = digits_of_words(t);
    check_value_of_words(&r);
    return r;
}

/// a + k p, which is a.
INLINE Sum add_p(Sum a, int k) {
    (void)k;
    return a;
}

INLINE Sum sum_of(const Digits *clean) {
    check_value_of_words(clean);
    return *clean;
}
INLINE Digits digits(Sum a) { return a; }
INLINE Digits product_digits(Sum a) { return a; }
INLINE Sum reduce_weakly(Sum a) { return a; }
INLINE Digits clean_digits(Sum a) { return a; }

// MARK: Products

/// t += a b. t was below 2^320.
INLINE void multiply_row(word t[6], const Digits *a, word b) {
    word low[4], high[4], carry = word_of_number(0);
    EACH_WORD(i) low[i] = multiply_words(&high[i], word_of(a, i), b);
    EACH_WORD(i) t[i] = add_words(t[i], low[i], &carry);
    t[4] = add_words(t[4], word_of_number(0), &carry);
    t[5] = carry;
    carry = word_of_number(0);
    EACH_WORD(i) t[i + 1] = add_words(t[i + 1], high[i], &carry);
    t[5] = sum_of_words(t[5], carry);
}

/// t = (t + m p) / 2^64 with the m below 2^64 that makes it a whole number. p is -1 modulo 2^64, so m is word 0; and
///
///     m p = (m 2^64 - m 2^32 + m) 2^192 + m 2^96 - m
INLINE void reduce_row(word t[6]) {
    const word m = t[0], low = shift_word_left(m, 32), high = shift_word_right(m, 32);
    word borrow = word_of_number(0), carry = word_of_number(0);
    const word at192 = subtract_words(m, low, &borrow);
    const word at256 = difference_of_words(difference_of_words(m, high), borrow);
    t[0] = add_words(t[1], low, &carry);
    t[1] = add_words(t[2], high, &carry);
    t[2] = add_words(t[3], at192, &carry);
    t[3] = add_words(t[4], at256, &carry);
    t[4] = sum_of_words(t[5], carry);
    t[5] = word_of_number(0);
}

/// a b / 2^256, of an a below 2^256. Every row leaves t below 2 p: (2 p + (2^64 - 1) p + (2^64 - 1) p) / 2^64 is 2 p.
PRODUCT Sum product(const Digits *a, const Digits *b) {
    word t[6];
    UNROLL(i, 0, 6) t[i] = word_of_number(0);
    check_value_of_words(b);
    EACH_WORD(i) {
        multiply_row(t, b, word_of(a, i));
        reduce_row(t);
    }
    return without_prime(t);
}

/// t = a^2, by ten multiplications.
INLINE void square_words(word t[8], const Digits *a) {
    word low[4][4], high[4][4];
    EACH_WORD(i) UNROLL(k, i, 4) low[i][k] = multiply_words(&high[i][k], word_of(a, i), word_of(a, k));
    word carry = word_of_number(0);
    t[1] = low[0][1];
    t[2] = add_words(high[0][1], low[0][2], &carry);
    t[3] = add_words(high[0][2], low[0][3], &carry);
    t[4] = sum_of_words(high[0][3], carry);
    carry = word_of_number(0);
    t[3] = add_words(t[3], low[1][2], &carry);
    t[4] = add_words(t[4], high[1][2], &carry);
    t[5] = carry;
    carry = word_of_number(0);
    t[4] = add_words(t[4], low[1][3], &carry);
    t[5] = sum_of_words(sum_of_words(t[5], high[1][3]), carry);
    carry = word_of_number(0);
    t[5] = add_words(t[5], low[2][3], &carry);
    t[6] = sum_of_words(high[2][3], carry);
    carry = word_of_number(0);
    UNROLL(i, 1, 7) t[i] = add_words(t[i], t[i], &carry);
    t[7] = carry;
    carry = word_of_number(0);
    t[0] = low[0][0];
    t[1] = add_words(t[1], high[0][0], &carry);
    UNROLL(i, 1, 4) {
        t[2 * i] = add_words(t[2 * i], low[i][i], &carry);
        t[2 * i + 1] = add_words(t[2 * i + 1], high[i][i], &carry);
    }
}

/// a^2 / 2^256. The lower half of a^2 becomes at most p, and the upper half is below p.
PRODUCT Sum square(const Digits *a) {
    word t[8], lower[6], carry = word_of_number(0);
    check_value_of_words(a);
    square_words(t, a);
    UNROLL(i, 0, 6) lower[i] = i < 4 ? t[i] : word_of_number(0);
    EACH_WORD(i) reduce_row(lower);
    EACH_WORD(i) lower[i] = add_words(lower[i], t[4 + i], &carry);
    lower[4] = sum_of_words(lower[4], carry);
    return without_prime(lower);
}

/// a^2 + b c.
INLINE Sum square_plus_product(const Digits *a, const Digits *b, const Digits *c) {
    return add(square(a), product(b, c));
}
/// a b + c d.
INLINE Sum product_plus_product(const Digits *a, const Digits *b, const Digits *c, const Digits *d) {
    return add(product(a, b), product(c, d));
}

// MARK: Out of line

/// r = a b. `r` may be a or b.
NOINLINE void multiply(Digits *r, const Digits *a, const Digits *b) { *r = product(a, b); }
/// r = a^2. `r` may be a.
NOINLINE void square_digits(Digits *r, const Digits *a) { *r = square(a); }
INLINE void multiply_clean(Digits *r, const Digits *a, const Digits *b) { multiply(r, a, b); }
INLINE void multiply_below_256_bits(Digits *r, const Digits *a, const Digits *b) { multiply(r, a, b); }
INLINE void multiply_sum(Sum *r, const Digits *a, const Digits *b) { multiply(r, a, b); }

/// A value is canonical already.
INLINE void canonical(Digits *r, const Digits *a) { *r = *a; }

/// Lanes in which the value is zero.
INLINE void is_zero(lane_mask zero[GROUPS], const Digits *a) {
    check_value_of_words(a);
    zero[0] = 1;
    EACH_WORD(i) zero[0] &= is_zero_word(word_of(a, i));
}

// MARK: Constants

/// w / 16, of a w below 2^256: from radix 2^260 to radix 2^256. (w + m p) / 16 with an m below 16 is below 2 p.
INLINE Digits sixteenth(const word w[4]) {
    // -p is 1 modulo 16, so m is what stands in the low 4 bits; and m p is made as in `reduce_row`.
    const word m = low_bits_of_word(w[0], 4), low = shift_word_left(m, 32);
    word borrow = word_of_number(0), carry = word_of_number(0), t[5], r[5];
    const word at192 = subtract_words(m, low, &borrow), at256 = difference_of_words(m, borrow);
    // m takes off what is shifted out of word 0. Bits 96 to 127 are bits 32 to 63 of word 1.
    t[0] = w[0];
    t[1] = add_words(w[1], low, &carry);
    t[2] = add_words(w[2], word_of_number(0), &carry);
    t[3] = add_words(w[3], at192, &carry);
    t[4] = sum_of_words(at256, carry);
    EACH_WORD(i) r[i] = join_words(shift_word_right(t[i], 4), shift_word_left(t[i + 1], 60));
    r[4] = shift_word_right(t[4], 4);
    return without_prime(r);
}

/// The four words of limbs of 52 bits that are below 2^256.
INLINE void words_from_limbs(word w[4], const lanes limb[LIMBS]) {
    lanes words[4];
    words_of_limbs(words, limb);
    EACH_WORD(i) w[i] = word_in(words[i]);
}

/// The value of a constant in Montgomery form with radix 2^260.
INLINE Digits constant(const uint64_t limb[LIMBS]) {
    lanes limbs[LIMBS];
    word w[4];
    EACH_LIMB(i) limbs[i] = broadcast(limb[i]);
    words_from_limbs(w, limbs);
    return sixteenth(w);
}
