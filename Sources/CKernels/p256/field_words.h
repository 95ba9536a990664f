// The field of P-256 for a single lane: the operations of field.h on four words of 64 bits, for processors whose
// multiplier takes words. A product of words is 16 multiplications, and one of limbs is 25.
//
// Every value is below p and in Montgomery form with radix 2^256. So a sum and its digits are the same, nothing is
// reduced weakly, and a multiple of p that keeps a difference positive (`add_p`) changes nothing. The ranges that
// formulas state in multiples of p are those of field.h; here debug builds check that every value is below p.
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

/// What a value of the field is besides a number modulo p.
#define FORMS_FILE "forms_words.h"

_Static_assert(LANES == 1 && GROUPS == 1, "a single lane");

typedef struct {
    lanes limb[GROUPS][LIMBS];
} Digits;
typedef Digits Sum;

typedef unsigned long long word;
typedef unsigned __int128 two_words;

/// a + b + the variable `carry`, which becomes the sum's carry.
#define ADD(a, b) __builtin_addcll(a, b, carry, &carry)
/// a - b - the variable `borrow`, which becomes the difference's borrow.
#define SUBTRACT(a, b) __builtin_subcll(a, b, borrow, &borrow)

#define EACH_WORD(i) UNROLL(i, 0, 4)

INLINE word word_of(const Digits *a, int i) { return a->limb[0][i].lane[0]; }

INLINE Digits digits_of_words(const word words[4]) {
    Digits r;
    EACH_LIMB(i) r.limb[0][i] = broadcast(i < 4 ? words[i] : 0);
    return r;
}

// MARK: Contracts

INLINE void check_value_of_words(const Digits *a) {
    if (!KERNEL_CHECKS_ON) return;
    word borrow = 0;
    EACH_WORD(i) { (void)SUBTRACT(word_of(a, i), P_WORDS[i]); }
    kernel_check(borrow == 1, "value of words: below p");
}
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

/// The value of five words that are below 2 p.
INLINE Sum without_prime(const word t[5]) {
    word less[4], borrow = 0;
    EACH_WORD(i) less[i] = SUBTRACT(t[i], P_WORDS[i]);
    (void)SUBTRACT(t[4], 0);
    EACH_WORD(i) less[i] = borrow ? t[i] : less[i];
    const Sum r = digits_of_words(less);
    check_value_of_words(&r);
    return r;
}

INLINE Sum add(Sum a, Sum b) {
    word t[5], carry = 0;
    EACH_WORD(i) t[i] = ADD(word_of(&a, i), word_of(&b, i));
    t[4] = carry;
    return without_prime(t);
}

INLINE Sum subtract(Sum a, Sum b) {
    word t[4], borrow = 0, carry = 0;
    EACH_WORD(i) t[i] = SUBTRACT(word_of(&a, i), word_of(&b, i));
    const word mask = 0 - borrow;
    EACH_WORD(i) t[i] = ADD(t[i], mask & P_WORDS[i]);
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
    word low[4], high[4], carry = 0;
    EACH_WORD(i) {
        const two_words product = (two_words)word_of(a, i) * b;
        low[i] = (word)product;
        high[i] = (word)(product >> 64);
    }
    EACH_WORD(i) t[i] = ADD(t[i], low[i]);
    t[4] = ADD(t[4], 0);
    t[5] = carry;
    carry = 0;
    EACH_WORD(i) t[i + 1] = ADD(t[i + 1], high[i]);
    t[5] += carry;
}

/// t = (t + m p) / 2^64 with the m below 2^64 that makes it a whole number. p is -1 modulo 2^64, so m is word 0; and
///
///     m p = (m 2^64 - m 2^32 + m) 2^192 + m 2^96 - m
INLINE void reduce_row(word t[6]) {
    const word m = t[0], low = m << 32, high = m >> 32;
    word borrow = 0, carry = 0;
    const word at192 = SUBTRACT(m, low), at256 = m - high - borrow;
    t[0] = ADD(t[1], low);
    t[1] = ADD(t[2], high);
    t[2] = ADD(t[3], at192);
    t[3] = ADD(t[4], at256);
    t[4] = t[5] + carry;
    t[5] = 0;
}

/// a b / 2^256, of an a below 2^256. Every row leaves t below 2 p: (2 p + (2^64 - 1) p + (2^64 - 1) p) / 2^64 is 2 p.
PRODUCT Sum product(const Digits *a, const Digits *b) {
    word t[6] = {0};
    check_value_of_words(b);
    EACH_WORD(i) {
        multiply_row(t, b, word_of(a, i));
        reduce_row(t);
    }
    return without_prime(t);
}

/// t = a^2, by ten multiplications.
INLINE void square_words(word t[8], const Digits *a) {
    two_words p[4][4];
    EACH_WORD(i) UNROLL(k, i, 4) p[i][k] = (two_words)word_of(a, i) * word_of(a, k);
    word carry = 0;
    t[1] = (word)p[0][1];
    t[2] = ADD((word)(p[0][1] >> 64), (word)p[0][2]);
    t[3] = ADD((word)(p[0][2] >> 64), (word)p[0][3]);
    t[4] = (word)(p[0][3] >> 64) + carry;
    carry = 0;
    t[3] = ADD(t[3], (word)p[1][2]);
    t[4] = ADD(t[4], (word)(p[1][2] >> 64));
    t[5] = carry;
    carry = 0;
    t[4] = ADD(t[4], (word)p[1][3]);
    t[5] = ADD(t[5], (word)(p[1][3] >> 64));
    // Without a carry: so far, t is below 2^384.
    carry = 0;
    t[5] = ADD(t[5], (word)p[2][3]);
    t[6] = (word)(p[2][3] >> 64) + carry;
    carry = 0;
    UNROLL(i, 1, 7) t[i] = ADD(t[i], t[i]);
    t[7] = carry;
    carry = 0;
    t[0] = (word)p[0][0];
    t[1] = ADD(t[1], (word)(p[0][0] >> 64));
    UNROLL(i, 1, 4) {
        t[2 * i] = ADD(t[2 * i], (word)p[i][i]);
        t[2 * i + 1] = ADD(t[2 * i + 1], (word)(p[i][i] >> 64));
    }
}

/// a^2 / 2^256. The lower half of a^2 becomes at most p, and the upper half is below p.
PRODUCT Sum square(const Digits *a) {
    word t[8], carry = 0;
    check_value_of_words(a);
    square_words(t, a);
    word lower[6] = {t[0], t[1], t[2], t[3]};
    EACH_WORD(i) reduce_row(lower);
    EACH_WORD(i) lower[i] = ADD(lower[i], t[4 + i]);
    lower[4] += carry;
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
    zero[0] = (word_of(a, 0) | word_of(a, 1) | word_of(a, 2) | word_of(a, 3)) == 0;
}

// MARK: Constants

/// w / 16, of a w below 2^256: from radix 2^260 to radix 2^256. (w + m p) / 16 with an m below 16 is below 2 p.
INLINE Digits sixteenth(const word w[4]) {
    // -p is 1 modulo 16, so m is what stands in the low 4 bits; and m p is made as in `reduce_row`.
    const word m = w[0] & 15, low = m << 32;
    word borrow = 0, carry = 0, t[5], r[5];
    const word at192 = SUBTRACT(m, low), at256 = m - borrow;
    // Bits 96 to 127 are bits 32 to 63 of word 1.
    t[0] = w[0] - m;
    t[1] = ADD(w[1], low);
    t[2] = ADD(w[2], 0);
    t[3] = ADD(w[3], at192);
    t[4] = at256 + carry;
    EACH_WORD(i) r[i] = t[i] >> 4 | t[i + 1] << 60;
    r[4] = t[4] >> 4;
    return without_prime(r);
}

/// The four words of limbs of 52 bits that are below 2^256.
INLINE void words_from_limbs(word w[4], const lanes limb[LIMBS]) {
    lanes words[4];
    words_of_limbs(words, limb);
    EACH_WORD(i) w[i] = first_lane(words[i]);
}

/// The value of a constant in Montgomery form with radix 2^260.
INLINE Digits constant(const uint64_t limb[LIMBS]) {
    lanes limbs[LIMBS];
    word w[4];
    EACH_LIMB(i) limbs[i] = broadcast(limb[i]);
    words_from_limbs(w, limbs);
    return sixteenth(w);
}
