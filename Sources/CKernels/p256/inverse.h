// One inverse modulo p or n, by division steps.
#pragma once

#include "division_steps.h"

/// inverse = 1 / value mod modulus, as words.
/// `value`: below the odd `modulus` and prime to it, not 0; `modulus_inverse`: 1 / modulus mod 2^62.
static inline void modular_inverse(
    uint64_t inverse[4], const uint64_t value[4], const uint64_t modulus[4], uint64_t modulus_inverse) {
    const Signed62 m = digits62_of_words(modulus);
    // Invariant: d * value = f and e * value = g modulo m; d and e stay between -2m and m.
    Signed62 d = {{0}}, e = {{1}}, f = m, g = digits62_of_words(value);
    int64_t eta = -1;
    check_value_to_invert(&g, &m);
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
        check_coefficient(&d, &m);
        check_coefficient(&e, &m);
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
