// Adding an affine point to a point.
//
//     h = X - x zz          i = (2 h)^2          j = h i          w = X i
//     r = V -+ 2 y Z zz
//     X' = r^2 + j - 2 w    Z' = -2 Z h          V' = 2 (r (X' - w) + V j)
#pragma once

#include "point.h"

/// h and 2 h, weakly reduced.
NOINLINE void addition_difference(Digits *h, Digits *twice_h, const Digits *x2, const Digits *zz, const Sum *x) {
    const Sum difference = subtract(*x, product(x2, zz));
    check_sum_range(&difference, 1.4, 9.7, "addition: X - x zz from 1.4 p to 9.7 p");
    const Sum r = reduce_weakly(difference), twice = add(r, r);
    check_sum_range(&r, 0, 1.01, "addition: h at most 1.01 p");
    check_sum_range(&twice, 0, 2.02, "addition: 2 h at most 2.02 p");
    *h = digits(r);
    *twice_h = digits(twice);
}

/// r; adds in the lanes of `negative`, which hold the opposite point.
NOINLINE void addition_slope(
    Digits *r, const Digits *y2, const Digits *zzz, const Sum *v, const lane_mask negative[GROUPS]) {
    const Sum other = product(y2, zzz);
    check_sum_range(&other, 0, 1.1, "addition: 2 y zzz at most 1.1 p");
    Sum own = add_p(*v, 2);
    check_sum_range(&own, 2, 4, "addition: V + 2 p from 2 p to 4 p");
    const Sum total = add(own, other);
    own = subtract(own, other);
    EACH_GROUP(g) choose_limbs(own.limb[g], negative[g], total.limb[g], own.limb[g]);
    check_sum_range(&own, 0.9, 5.1, "addition: r from 0.9 p to 5.1 p");
    *r = digits(own);
}

/// X' and X' - w.
NOINLINE void addition_x(Sum *x, Digits *x_digits, Digits *x_difference, const Digits *r, const Sum *j, const Sum *w) {
    const Sum squared = square(r);
    check_sum_range(&squared, 0, 2.6, "addition: r^2 at most 2.6 p");
    check_sum_range(j, 0, 1.1, "addition: j at most 1.1 p");
    check_sum_range(w, 0, 1.8, "addition: w at most 1.8 p");
    *x = add_p(subtract(subtract(add(squared, *j), *w), *w), 6);
    check_sum_range(x, 2.5, 9.7, "addition: X' from 2.5 p to 9.7 p");
    *x_digits = digits(*x);
    const Sum difference = subtract(*x, *w);
    check_sum_range(&difference, 0.7, 9.7, "addition: X' - w from 0.7 p to 9.7 p");
    *x_difference = digits(difference);
}

NOINLINE void addition_v(
    Sum *v, Digits *v_digits, const Digits *r, const Digits *x_difference, const Digits *old, const Digits *j) {
    const Sum half = product_plus_product(r, x_difference, old, j);
    check_sum_range(&half, 0, 4.2, "addition: V' / 2 at most 4.2 p before it is reduced");
    *v = reduce_weakly(add(half, half));
    check_sum_range(v, 0, 1.01, "addition: V' at most 1.01 p");
    *v_digits = digits(*v);
}

NOINLINE void multiply_to_sum_and_digits(Sum *sum, Digits *r, const Digits *a, const Digits *b) {
    *sum = product(a, b);
    *r = product_digits(*sum);
}

/// P = P + a, or P - a in the lanes of `negative`; flips the sign of V. Leaves Z = 0 where P = +-a.
NOINLINE void add_affine(Point *p, const Affine *a, const lane_mask negative[GROUPS]) {
    Digits zz, zzz, h, twice_h, i, j_digits, r, x_difference;
    Sum j, w;
    check_point(p);
    check_affine(a);
    square_digits(&zz, &p->z);
    check_digits(&zz, 0, 1.1, "addition: zz at most 1.1 p");
    addition_difference(&h, &twice_h, &a->x, &zz, &p->x);
    multiply(&zzz, &p->z, &zz);
    check_digits(&zzz, 0, 1.1, "addition: zzz at most 1.1 p");
    square_digits(&i, &twice_h);
    check_digits(&i, 0, 1.3, "addition: i at most 1.3 p");
    addition_slope(&r, &a->y2, &zzz, &p->v, negative);
    multiply_to_sum_and_digits(&j, &j_digits, &h, &i);
    multiply_sum(&w, &p->x_digits, &i);
    addition_x(&p->x, &p->x_digits, &x_difference, &r, &j, &w);
    multiply(&p->z, &p->z, &twice_h);
    check_digits(&p->z, 0, 1.2, "addition: Z' at most 1.2 p");
    addition_v(&p->v, &p->v_digits, &r, &x_difference, &p->v_digits, &j_digits);
    check_point(p);
}
