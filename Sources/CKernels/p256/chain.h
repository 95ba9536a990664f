// P, 3 P, 5 P, ... by adding 2 P again and again. Both points of such an addition are kept on one Z (Meloni,
// "New point addition formulae for ECC applications", 2007), which makes it cheap, and one inversion at the
// end turns many of them affine.
//
// The exceptional cases do not occur. P is on the curve (`load_keys` sees to that) and is not infinity, so its order is
// the prime n. The x of (2 k + 1) P and of 2 P are equal only if 2 k + 1 is 2 or -2 modulo n, and no k below
// (n - 3) / 2 does that. So no z ratio is 0, and no Z: it begins as 2 y, and no point has order 2. (A longer chain
// would have Z = 0 from n P on, which is infinity. No caller could repair that: it would fail the inversion of all
// lanes.)
#pragma once

#include "point.h"

enum { CHAIN = 16 };

/// A run of CHAIN odd multiples on its way to affine form. Coordinates are clean.
typedef struct {
    Digits x[CHAIN], v[CHAIN];
    /// z_ratio[k]: what Z was multiplied with on the way from multiple k - 1 to k.
    Digits z_ratio[CHAIN];
    /// Of the last multiple.
    Digits z;
    /// Twice the first point of all, on the same Z.
    Digits step_x, step_v;
} Chain;

/// a - b + 2 p, from 0.9 p to 3.1 p, or twice that. a and b are clean and at most 1.1 p.
INLINE Sum sum_of_difference(const Digits *a, const Digits *b, int twice) {
    check_coordinate(a);
    check_coordinate(b);
    const Sum r = add_p(subtract(sum_of(a), sum_of(b)), 2);
    check_sum_range(&r, 0.9, 3.1, "difference of coordinates: from 0.9 p to 3.1 p");
    return twice ? add(r, r) : r;
}

/// a - b + 2 p, or twice that; at most 6.1 p. a and b are clean and at most 1.1 p.
INLINE Digits factor_difference(const Digits *a, const Digits *b, int twice) {
    return digits(sum_of_difference(a, b, twice));
}

/// The same, clean.
INLINE Digits difference(const Digits *a, const Digits *b, int twice) {
    return clean_digits(sum_of_difference(a, b, twice));
}

/// Begins with P itself, on Z = 2 y.
NOINLINE void begin_chain(Chain *chain, const Affine *p) {
    Digits g, s, alpha, u;
    check_affine(p);
    multiply_clean(&g, &p->y2, &p->y2);
    multiply_clean(&s, &p->x, &g);
    const Digits one = constant(P_ONE);
    const Sum third = add_p(subtract(square(&p->x), sum_of(&one)), 2);
    check_sum_range(&third, 1.9, 3.1, "chain: alpha / 3 from 1.9 p to 3.1 p before it is reduced");
    alpha = clean_digits(add(add(third, third), third));
    // P on Z = 2 y is (4 x y^2, 8 y^4), and 2 P is (alpha^2 - 2 s, alpha (s - X') - 8 y^4).
    chain->x[0] = s;
    multiply_clean(&chain->v[0], &g, &g);
    const Sum s_sum = sum_of(&s);
    const Sum x_sum = add_p(subtract(subtract(square(&alpha), s_sum), s_sum), 3);
    check_sum_range(&x_sum, 0.9, 4.1, "chain: X of 2 P from 0.9 p to 4.1 p before it is reduced");
    chain->step_x = clean_digits(x_sum);
    u = factor_difference(&s, &chain->step_x, 1);
    multiply_clean(&u, &alpha, &u);
    chain->step_v = difference(&u, &chain->v[0], 0);
    chain->z = p->y2;
}

/// Multiple k from multiple `from` and the step.
NOINLINE void extend_chain(Chain *chain, int from, int k) {
    Digits a, b, c, e, u, y_difference;
    const Digits *x = &chain->x[from], *v = &chain->v[from];
    chain->z_ratio[k] = factor_difference(x, &chain->step_x, 1);
    y_difference = factor_difference(v, &chain->step_v, 0);
    multiply(&chain->z, &chain->z, &chain->z_ratio[k]);
    check_digits(&chain->z, 0, 1.7, "chain: Z at most 1.7 p");
    square_digits(&a, &chain->z_ratio[k]);
    multiply_clean(&b, &chain->step_x, &a);
    multiply_clean(&c, x, &a);
    const Sum x_sum = add_p(subtract(subtract(square(&y_difference), sum_of(&b)), sum_of(&c)), 3);
    check_sum_range(&x_sum, 1, 4.6, "chain: X' from p to 4.6 p before it is reduced");
    const Digits x_new = clean_digits(x_sum);
    u = factor_difference(&c, &b, 0);
    multiply_clean(&e, &chain->step_v, &u);
    u = factor_difference(&b, &x_new, 0);
    multiply_clean(&u, &y_difference, &u);
    chain->x[k] = x_new;
    chain->v[k] = difference(&u, &e, 1);
    chain->step_x = b;
    const Sum e_sum = sum_of(&e);
    chain->step_v = clean_digits(add(e_sum, e_sum));
}
