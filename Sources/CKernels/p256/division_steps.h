// Division steps: Bernstein and Yang, "Fast constant-time gcd computation and modular inversion" (2019), in their
// variable-time form - all that is inverted here is public.
#pragma once

#include <stdint.h>

#include "../kernel_checks.h"

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

/// a / m, rounded. A negative a is -1 - c of its complement c, whose digits don't cancel each other.
static inline double multiples_of_modulus(const Signed62 *a, const Signed62 *m) {
    double value = 0, modulus = 0;
    const int64_t sign = a->digit[4] >> 63;
    for (int i = 4; i >= 0; i--) {
        value = value * 0x1p62 + (double)(a->digit[i] ^ (i < 4 ? sign & DIGIT62_MASK : sign));
        modulus = modulus * 0x1p62 + (double)m->digit[i];
    }
    return (sign ? -1 - value : value) / modulus;
}

/// The value is not 0 and below the modulus. Both have digits that are not negative.
static inline void check_value_to_invert(const Signed62 *value, const Signed62 *m) {
    if (!KERNEL_CHECKS_ON) return;
    int64_t any = 0;
    int is_below = 0;
    for (int i = 0; i < 5; i++) {
        any |= value->digit[i];
        if (value->digit[i] != m->digit[i]) is_below = value->digit[i] < m->digit[i];
    }
    kernel_check(any != 0 && is_below, "inverse: of a value that is not 0 and below the modulus");
}

/// A coefficient is between -2m and m. An error of rounding is far below 2^-40 m.
static inline void check_coefficient(const Signed62 *a, const Signed62 *m) {
    if (!KERNEL_CHECKS_ON) return;
    const double multiples = multiples_of_modulus(a, m);
    kernel_check(multiples > -2 - 0x1p-40 && multiples < 1 + 0x1p-40, "inverse: d and e between -2m and m");
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
