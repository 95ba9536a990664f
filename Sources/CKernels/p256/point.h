// Points of P-256 in Jacobian coordinates (X / Z^2, Y / Z^3), without a form for infinity.
//
// 2 Y is kept instead of Y, and only up to a sign that the caller tracks: every operation flips it, which turns all
// subtractions but a few into additions.
//
// The exceptional cases. Adding T to P needs P != T and P != -T. Otherwise both have the same x, h = X - x Z^2 is 0
// modulo p, and so is the new Z = -2 Z h. From then on Z stays 0, since every new Z is a multiple of the old one. The
// converse holds too: p is a prime, so 2 Z h is 0 only if Z or h is, and the new Z = 2 Y Z of a doubling is 0 only if Z
// is or Y is; but a point with Y = 0 has order 2, and the order n of the group is an odd prime. So one look at the last
// Z finds exactly the lanes in which some operation met an exceptional case. Infinity is among them: it arises only
// from adding P to -P. (The tests run the formulas and the verification on all points and scalars of a small curve.)
//
// Debug builds check the bounds, which are an invariant (`check_point`).
#pragma once

#ifndef FIELD_FILE
/// The field of the curve. Tests have another one for small primes.
#define FIELD_FILE "field.h"
#endif
#include FIELD_FILE

#ifndef FORMS_FILE
/// The other forms of its values. A field that is not one of limbs names its own.
#define FORMS_FILE "forms.h"
#endif
#include FORMS_FILE

typedef struct {
    Sum x;
    Digits x_digits;
    /// 2 Y, or -2 Y in the lanes whose sign the caller has flipped.
    Sum v;
    Digits v_digits;
    Digits z;
} Point;

/// An affine point (x, 2 y), clean, each at most 1.1 p.
typedef struct {
    Digits x, y2;
} Affine;

/// The invariant: holds before and after every operation, also in lanes with an exceptional case.
INLINE void check_point(const Point *p) {
    check_sum_range(&p->x, 2.5, 9.7, "point: X from 2.5 p to 9.7 p");
    check_sum_range(&p->v, 0, 2, "point: V at most 2 p");
    check_digits(&p->z, 0, 1.2, "point: Z at most 1.2 p");
}

INLINE void check_coordinate(const Digits *a) {
    check_clean(a, "affine point: clean coordinates");
    check_digits(a, 0, 1.1, "affine point: coordinates at most 1.1 p");
}

INLINE void check_affine(const Affine *a) {
    check_coordinate(&a->x);
    check_coordinate(&a->y2);
}

INLINE void set_affine(Point *p, const Affine *a) {
    check_affine(a);
    p->x = add_p(sum_of(&a->x), 3);
    p->x_digits = digits(p->x);
    p->v = sum_of(&a->y2);
    p->v_digits = a->y2;
    p->z = constant(P_ONE);
    check_point(p);
}
