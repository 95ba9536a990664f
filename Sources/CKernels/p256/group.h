// Points of P-256 in Jacobian coordinates (X / Z^2, Y / Z^3), without infinity and without exceptions.
//
// 2 Y is kept instead of Y, and only up to a sign that the caller tracks: every operation flips it, which
// turns all subtractions but a few into additions. Where a formula does not hold (adding P to P or -P), it
// leaves Z = 0, and Z stays 0 from then on; so one look at the end finds every such lane.
//
// The bounds in the comments, in multiples of p, are an invariant: with
//     2.4 <= X <= 9.8,  V <= 2.1,  Z <= 1.3
// before an operation, they hold after it.
#pragma once

#include "field.h"

typedef struct {
    Sum x;
    Digits x_digits;
    /// 2 Y, or -2 Y in the lanes whose sign the caller has flipped.
    Sum v;
    Digits v_digits;
    Digits z;
} Point;

/// An affine point (x, 2 y), clean, each below 1.1 p.
typedef struct {
    Digits x, y2;
} Affine;

INLINE void set_affine(Point *p, const Affine *a) {
    p->x = add_p(sum_of(&a->x), 3);
    p->x_digits = digits(p->x);
    p->v = sum_of(&a->y2);
    p->v_digits = a->y2;
    p->z = constant(P_ONE);
}

// MARK: Doubling
//
//     zz = Z^2              g = V^2              s = X g
//     alpha = 3 (X - zz) (X + zz)
//     X' = alpha^2 - 2 s    Z' = V Z             V' = -(2 alpha (s - X') - g^2)

/// minus = X - zz, plus = X + zz.
NOINLINE void doubling_factors(Digits *difference, Digits *total, const Sum *x, const Digits *z) {
    const Sum zz = square(z);                // <= 1.2
    *difference = digits(subtract(*x, zz));  // 1.2 ... 9.8
    *total = digits(add(*x, zz));            // <= 11
}

/// alpha = 3 a b, weakly reduced.
NOINLINE void doubling_slope(Digits *alpha, const Digits *a, const Digits *b) {
    const Sum r = product(a, b);  // <= 7.8
    *alpha = digits(reduce_weakly(add(add(r, r), r)));
}

/// X' and 2 (X' - s).
NOINLINE void doubling_x(Sum *x, Digits *x_digits, Digits *twice_x_difference, const Digits *alpha, const Sum *s) {
    // alpha^2 <= 1.1, s <= 1.9: X' is 2.4 ... 7.1, X' - s is 0.5 ... 7.1.
    *x = add_p(subtract(subtract(square(alpha), *s), *s), 6);
    *x_digits = digits(*x);
    const Sum x_difference = subtract(*x, *s);
    *twice_x_difference = digits(add(x_difference, x_difference));
}

/// V' = g^2 + alpha * 2 (X' - s), at most (1.7 + 1.1 * 14.2) / 16 + 1 = 2.1.
NOINLINE void doubling_v(
    Sum *v, Digits *v_digits, const Digits *g, const Digits *alpha, const Digits *twice_x_difference) {
    *v = square_plus_product(g, alpha, twice_x_difference);
    *v_digits = digits(*v);
}

/// P = 2 P; flips the sign of V.
NOINLINE void double_point(Point *p) {
    Digits a, b, g, alpha, twice_x_difference;
    Sum s;
    doubling_factors(&a, &b, &p->x, &p->z);
    square_digits(&g, &p->v_digits);
    doubling_slope(&alpha, &a, &b);
    multiply_sum(&s, &p->x_digits, &g);
    doubling_x(&p->x, &p->x_digits, &twice_x_difference, &alpha, &s);
    multiply(&p->z, &p->v_digits, &p->z);
    doubling_v(&p->v, &p->v_digits, &g, &alpha, &twice_x_difference);
}

// MARK: Adding an affine point
//
//     h = X - x zz          i = (2 h)^2          j = h i          w = X i
//     r = V -+ 2 y Z zz
//     X' = r^2 + j - 2 w    Z' = -2 Z h          V' = 2 (r (X' - w) + V j)

/// h and 2 h, weakly reduced.
NOINLINE void addition_difference(Digits *h, Digits *twice_h, const Digits *x2, const Digits *zz, const Sum *x) {
    const Sum r = reduce_weakly(subtract(*x, product(x2, zz)));  // of 1.2 ... 9.8
    *h = digits(r);
    *twice_h = digits(add(r, r));
}

/// r; adds in the lanes of `negative`, which hold the opposite point.
NOINLINE void addition_slope(
    Digits *r, const Digits *y2, const Digits *zzz, const Sum *v, const __mmask8 negative[GROUPS]) {
    const Sum other = product(y2, zzz);  // <= 1.1
    Sum own = add_p(*v, 2);              // 2 ... 4.1
    EACH_GROUP(g)
        EACH_LIMB(i)
            own.limb[g][i] = _mm512_mask_add_epi64(
                minus(own.limb[g][i], other.limb[g][i]), negative[g], own.limb[g][i], other.limb[g][i]);
    *r = digits(own);  // 0.9 ... 5.2
}

/// X' and X' - w.
NOINLINE void addition_x(Sum *x, Digits *x_digits, Digits *x_difference, const Digits *r, const Sum *j, const Sum *w) {
    // r^2 <= 2.7, j <= 1.1, w <= 1.8: X' is 2.4 ... 9.8, X' - w is 0.6 ... 9.8.
    *x = add_p(subtract(subtract(add(square(r), *j), *w), *w), 6);
    *x_digits = digits(*x);
    *x_difference = digits(subtract(*x, *w));
}

NOINLINE void addition_v(
    Sum *v, Digits *v_digits, const Digits *r, const Digits *x_difference, const Digits *old, const Digits *j) {
    const Sum half = product_plus_product(r, x_difference, old, j);  // <= 4.4
    *v = reduce_weakly(add(half, half));
    *v_digits = digits(*v);
}

NOINLINE void multiply_to_sum_and_digits(Sum *sum, Digits *r, const Digits *a, const Digits *b) {
    *sum = product(a, b);
    *r = digits(*sum);
}

/// P = P + a, or P - a in the lanes of `negative`; flips the sign of V. Leaves Z = 0 where P = +-a.
NOINLINE void add_affine(Point *p, const Affine *a, const __mmask8 negative[GROUPS]) {
    Digits zz, zzz, h, twice_h, i, j_digits, r, x_difference;
    Sum j, w;
    square_digits(&zz, &p->z);
    addition_difference(&h, &twice_h, &a->x, &zz, &p->x);
    multiply(&zzz, &p->z, &zz);
    square_digits(&i, &twice_h);  // (2 h)^2 <= 4.1 / 16 + 1
    addition_slope(&r, &a->y2, &zzz, &p->v, negative);
    multiply_to_sum_and_digits(&j, &j_digits, &h, &i);
    multiply_sum(&w, &p->x_digits, &i);
    addition_x(&p->x, &p->x_digits, &x_difference, &r, &j, &w);
    multiply(&p->z, &p->z, &twice_h);
    addition_v(&p->v, &p->v_digits, &r, &x_difference, &p->v_digits, &j_digits);
}

// MARK: Odd multiples
//
// P, 3 P, 5 P, ... by adding 2 P again and again. Both points of such an addition are kept on one Z (Meloni,
// "New point addition formulae for ECC applications", 2007), which makes it cheap, and one inversion at the
// end turns many of them affine.

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

/// a - b + 2 p, or twice that; at most 6.2 p. a and b clean and at most 1.1 p.
INLINE Digits factor_difference(const Digits *a, const Digits *b, int twice) {
    Sum r = add_p(subtract(sum_of(a), sum_of(b)), 2);
    return digits(twice ? add(r, r) : r);
}

/// The same, clean.
INLINE Digits difference(const Digits *a, const Digits *b, int twice) {
    Sum r = add_p(subtract(sum_of(a), sum_of(b)), 2);
    return clean_digits(twice ? add(r, r) : r);
}

/// Begins with P itself, on Z = 2 y.
NOINLINE void begin_chain(Chain *chain, const Affine *p) {
    Digits g, s, alpha, u;
    multiply_clean(&g, &p->y2, &p->y2);
    multiply_clean(&s, &p->x, &g);
    {
        const Digits one = constant(P_ONE);
        const Sum r = add_p(subtract(square(&p->x), sum_of(&one)), 2);
        alpha = clean_digits(add(add(r, r), r));
    }
    // P on Z = 2 y is (4 x y^2, 8 y^4), and 2 P is (alpha^2 - 2 s, alpha (s - X') - 8 y^4).
    chain->x[0] = s;
    multiply_clean(&chain->v[0], &g, &g);
    const Sum s_sum = sum_of(&s);
    chain->step_x = clean_digits(add_p(subtract(subtract(square(&alpha), s_sum), s_sum), 3));
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
    square_digits(&a, &chain->z_ratio[k]);
    multiply_clean(&b, &chain->step_x, &a);
    multiply_clean(&c, x, &a);
    const Digits x_new = clean_digits(add_p(subtract(subtract(square(&y_difference), sum_of(&b)), sum_of(&c)), 3));
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

// MARK: Packed points
//
// A row of a table is one cache line: x and 2 y in Montgomery form as four words each, below 2^256, and below p
// but for one in 2^32.

enum { ROW_WORDS = 8 };

/// The point of every lane from the row that the lane points to. Rows are 64-byte aligned.
INLINE void load_rows(Affine *a, const lanes address[GROUPS]) {
    EACH_GROUP(g) {
        uint64_t at[LANES];
        lanes row[8];
        _mm512_storeu_si512(at, address[g]);
        UNROLL(lane, 0, LANES) row[lane] = _mm512_load_si512((const void *)at[lane]);
        transpose(row);
        limbs_of_words(a->x.limb[g], row);
        limbs_of_words(a->y2.limb[g], row + 4);
    }
}

/// The reverse, of clean coordinates below 2^256. Lanes whose address is 0 are left out.
INLINE void store_rows(const Affine *a, uint64_t *const row_of_lane[BLOCK]) {
    EACH_GROUP(g) {
        lanes row[8];
        words_of_limbs(row, a->x.limb[g]);
        words_of_limbs(row + 4, a->y2.limb[g]);
        transpose(row);
        UNROLL(lane, 0, LANES)
            if (row_of_lane[g * LANES + lane]) _mm512_store_si512(row_of_lane[g * LANES + lane], row[lane]);
    }
}

/// Stores the chain's multiples as rows k of every lane's table. `inverse`: of the chain's z; undefined afterwards.
NOINLINE void store_chain(Chain *chain, Digits *inverse, uint64_t *const table_of_lane[BLOCK]) {
    for (int k = CHAIN - 1; k >= 0; k--) {
        Digits zz, zzz;
        Affine a;
        square_digits(&zz, inverse);
        multiply(&zzz, &zz, inverse);
        multiply_below_256_bits(&a.x, &chain->x[k], &zz);
        multiply_below_256_bits(&a.y2, &chain->v[k], &zzz);
        uint64_t *row[BLOCK];
        for (int lane = 0; lane < BLOCK; lane++)
            row[lane] = table_of_lane[lane] ? table_of_lane[lane] + ROW_WORDS * k : 0;
        store_rows(&a, row);
        if (k > 0) multiply(inverse, inverse, &chain->z_ratio[k]);
    }
}

/// inverse = 1 / z in all groups. False when some lane is zero.
NOINLINE int invert_digits(Digits *inverse, const Digits *z) {
    lanes x[GROUPS][LIMBS], scratch[GROUPS][LIMBS];
    Digits clean;
    canonical(&clean, z);
    memcpy(x, &clean, sizeof x);
    const int isDone = invert_many(x, GROUPS, scratch, &FIELD_PRIME);
    memcpy(inverse, x, sizeof x);
    return isDone;
}
