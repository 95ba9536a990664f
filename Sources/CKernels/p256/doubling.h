// Doubling a point.
//
//     zz = Z^2              g = V^2              s = X g
//     alpha = 3 (X - zz) (X + zz)
//     X' = alpha^2 - 2 s    Z' = V Z             V' = -(2 alpha (s - X') - g^2)
//
// It holds for every point, and leaves Z = 0 where Z is 0 (point.h).
#pragma once

#include "point.h"

/// X - zz and X + zz.
NOINLINE void doubling_factors(Digits *difference, Digits *total, const Sum *x, const Digits *z) {
    const Sum zz = square(z);
    check_sum_range(&zz, 0, 1.1, "doubling: zz at most 1.1 p");
    const Sum minus_zz = subtract(*x, zz), plus_zz = add(*x, zz);
    check_sum_range(&minus_zz, 1.5, 9.7, "doubling: X - zz from 1.5 p to 9.7 p");
    check_sum_range(&plus_zz, 2.6, 10.8, "doubling: X + zz from 2.6 p to 10.8 p");
    *difference = digits(minus_zz);
    *total = digits(plus_zz);
}

/// alpha = 3 a b, weakly reduced.
NOINLINE void doubling_slope(Digits *alpha, const Digits *a, const Digits *b) {
    const Sum r = product(a, b);
    check_sum_range(&r, 0.2, 7.5, "doubling: (X - zz) (X + zz) from 0.2 p to 7.5 p");
    *alpha = digits(reduce_weakly(add(add(r, r), r)));
    check_digits(alpha, 0, 1.1, "doubling: alpha at most 1.1 p");
}

/// X' and 2 (X' - s).
NOINLINE void doubling_x(Sum *x, Digits *x_digits, Digits *twice_x_difference, const Digits *alpha, const Sum *s) {
    const Sum squared = square(alpha);
    check_sum_range(&squared, 0, 1.1, "doubling: alpha^2 at most 1.1 p");
    check_sum_range(s, 0, 1.7, "doubling: s at most 1.7 p");
    *x = add_p(subtract(subtract(squared, *s), *s), 6);
    check_sum_range(x, 2.7, 7.1, "doubling: X' from 2.7 p to 7.1 p");
    *x_digits = digits(*x);
    const Sum x_difference = subtract(*x, *s);
    check_sum_range(&x_difference, 1, 7.1, "doubling: X' - s from p to 7.1 p");
    const Sum twice = add(x_difference, x_difference);
    check_sum_range(&twice, 2.1, 14.2, "doubling: 2 (X' - s) from 2.1 p to 14.2 p");
    *twice_x_difference = digits(twice);
}

/// V' = g^2 + alpha * 2 (X' - s), at most (1.25^2 + 1.01 * 14.2) / 16 + 1 < 2.
NOINLINE void doubling_v(
    Sum *v, Digits *v_digits, const Digits *g, const Digits *alpha, const Digits *twice_x_difference) {
    check_digits(g, 0, 1.3, "doubling: g at most 1.3 p");
    *v = square_plus_product(g, alpha, twice_x_difference);
    check_sum_range(v, 0, 2, "doubling: V' at most 2 p");
    *v_digits = product_digits(*v);
}

/// P = 2 P; flips the sign of V.
NOINLINE void double_point(Point *p) {
    Digits a, b, g, alpha, twice_x_difference;
    Sum s;
    check_point(p);
    doubling_factors(&a, &b, &p->x, &p->z);
    square_digits(&g, &p->v_digits);
    doubling_slope(&alpha, &a, &b);
    multiply_sum(&s, &p->x_digits, &g);
    doubling_x(&p->x, &p->x_digits, &twice_x_difference, &alpha, &s);
    multiply(&p->z, &p->v_digits, &p->z);
    check_digits(&p->z, 0, 1.2, "doubling: Z' at most 1.2 p");
    doubling_v(&p->v, &p->v_digits, &g, &alpha, &twice_x_difference);
    check_point(p);
}
