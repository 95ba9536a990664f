// One inverse modulo p or n: Bernstein and Yang, "Fast constant-time gcd computation and modular inversion"
// (2019), in its variable-time form - all that is inverted here is public.
#pragma once

#include <stdint.h>

/// Signed digits of 62 bits, least significant first; the last may have any sign.
typedef struct {
    int64_t digit[5];
} Signed62;

#define DIGIT62_MASK ((int64_t)(UINT64_MAX >> 2))

static inline Signed62 digits62_of_words(const uint64_t word[4]) {
    Signed62 a = {{
        (int64_t)(word[0] & (uint64_t)DIGIT62_MASK),
        (int64_t)((word[0] >> 62 | word[1] << 2) & (uint64_t)DIGIT62_MASK),
        (int64_t)((word[1] >> 60 | word[2] << 4) & (uint64_t)DIGIT62_MASK),
        (int64_t)((word[2] >> 58 | word[3] << 6) & (uint64_t)DIGIT62_MASK),
        (int64_t)(word[3] >> 56),
    }};
    return a;
}

/// Of a value from 0 to 2^256 - 1 with digits that are not negative.
static inline void words_of_digits62(uint64_t word[4], const Signed62 *a) {
    const uint64_t d[5] = {
        (uint64_t)a->digit[0], (uint64_t)a->digit[1], (uint64_t)a->digit[2], (uint64_t)a->digit[3],
        (uint64_t)a->digit[4]};
    word[0] = d[0] | d[1] << 62;
    word[1] = d[1] >> 2 | d[2] << 60;
    word[2] = d[2] >> 4 | d[3] << 58;
    word[3] = d[3] >> 6 | d[4] << 56;
}

/// What 62 division steps do to (f, g): multiply by this matrix and divide by 2^62.
typedef struct {
    int64_t ff, fg, gf, gg;
} Transition;

/// 62 division steps on the lowest 62 bits of f (odd) and g. Returns the new eta.
static inline int64_t divide_62_steps(int64_t eta, uint64_t f, uint64_t g, Transition *t) {
    uint64_t ff = 1, fg = 0, gf = 0, gg = 1;
    int left = 62;
    for (;;) {
        // The sentinel keeps the count of zeros within the steps that are left.
        const int zeros = __builtin_ctzll(g | UINT64_MAX << left);
        g >>= zeros;
        ff <<= zeros;
        fg <<= zeros;
        eta -= zeros;
        left -= zeros;
        if (left == 0) break;
        if (eta < 0) {
            uint64_t old = f;
            eta = -eta;
            f = g;
            g = -old;
            old = ff;
            ff = gf;
            gf = -old;
            old = fg;
            fg = gg;
            gg = -old;
        }
        // Cancel up to six bits of g with a multiple of f: f * (f^2 - 2) is -1 / f modulo 2^6.
        int bits = eta + 1 < left ? (int)eta + 1 : left;
        if (bits > 6) bits = 6;
        const uint64_t w = f * g * (f * f - 2) & (UINT64_MAX >> (64 - bits));
        g += f * w;
        gf += ff * w;
        gg += fg * w;
    }
    *t = (Transition){(int64_t)ff, (int64_t)fg, (int64_t)gf, (int64_t)gg};
    return eta;
}

/// inverse = 1 / value mod modulus, as words.
/// `value`: below the odd `modulus` and prime to it, not 0; `modulus_inverse`: 1 / modulus mod 2^62.
static inline void modular_inverse(
    uint64_t inverse[4], const uint64_t value[4], const uint64_t modulus[4], uint64_t modulus_inverse) {
    const Signed62 m = digits62_of_words(modulus);
    // Invariant: d * value = f and e * value = g modulo m; d and e stay between -2m and m.
    Signed62 d = {{0}}, e = {{1}}, f = m, g = digits62_of_words(value);
    int64_t eta = -1;
    for (;;) {
        Transition t;
        eta = divide_62_steps(
            eta, (uint64_t)f.digit[0] | (uint64_t)f.digit[1] << 62, (uint64_t)g.digit[0] | (uint64_t)g.digit[1] << 62,
            &t);

        // d and e: add the multiple of m that makes the product divisible by 2^62.
        const int64_t d_sign = d.digit[4] >> 63, e_sign = e.digit[4] >> 63;
        int64_t dm = (t.ff & d_sign) + (t.fg & e_sign), em = (t.gf & d_sign) + (t.gg & e_sign);
        __int128 dc = (__int128)t.ff * d.digit[0] + (__int128)t.fg * e.digit[0];
        __int128 ec = (__int128)t.gf * d.digit[0] + (__int128)t.gg * e.digit[0];
        dm -= (int64_t)((modulus_inverse * (uint64_t)dc + (uint64_t)dm) & (uint64_t)DIGIT62_MASK);
        em -= (int64_t)((modulus_inverse * (uint64_t)ec + (uint64_t)em) & (uint64_t)DIGIT62_MASK);
        dc = (dc + (__int128)m.digit[0] * dm) >> 62;
        ec = (ec + (__int128)m.digit[0] * em) >> 62;
        // f and g: the product is divisible as it is.
        __int128 fc = ((__int128)t.ff * f.digit[0] + (__int128)t.fg * g.digit[0]) >> 62;
        __int128 gc = ((__int128)t.gf * f.digit[0] + (__int128)t.gg * g.digit[0]) >> 62;
        for (int i = 1; i < 5; i++) {
            dc += (__int128)t.ff * d.digit[i] + (__int128)t.fg * e.digit[i] + (__int128)m.digit[i] * dm;
            ec += (__int128)t.gf * d.digit[i] + (__int128)t.gg * e.digit[i] + (__int128)m.digit[i] * em;
            fc += (__int128)t.ff * f.digit[i] + (__int128)t.fg * g.digit[i];
            gc += (__int128)t.gf * f.digit[i] + (__int128)t.gg * g.digit[i];
            d.digit[i - 1] = (int64_t)dc & DIGIT62_MASK;
            dc >>= 62;
            e.digit[i - 1] = (int64_t)ec & DIGIT62_MASK;
            ec >>= 62;
            f.digit[i - 1] = (int64_t)fc & DIGIT62_MASK;
            fc >>= 62;
            g.digit[i - 1] = (int64_t)gc & DIGIT62_MASK;
            gc >>= 62;
        }
        d.digit[4] = (int64_t)dc;
        e.digit[4] = (int64_t)ec;
        f.digit[4] = (int64_t)fc;
        g.digit[4] = (int64_t)gc;
        if ((g.digit[0] | g.digit[1] | g.digit[2] | g.digit[3] | g.digit[4]) == 0) break;
    }

    // f is 1 or -1 now, and d the inverse with that sign, between -2m and m.
    int64_t add = d.digit[4] >> 63;
    const int64_t negate = f.digit[4] >> 63;
    for (int i = 0; i < 5; i++) d.digit[i] = ((d.digit[i] + (m.digit[i] & add)) ^ negate) - negate;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++) {
            d.digit[i + 1] += d.digit[i] >> 62;
            d.digit[i] &= DIGIT62_MASK;
        }
        if (round == 0) {
            add = d.digit[4] >> 63;
            for (int i = 0; i < 5; i++) d.digit[i] += m.digit[i] & add;
        }
    }
    words_of_digits62(inverse, &d);
}
