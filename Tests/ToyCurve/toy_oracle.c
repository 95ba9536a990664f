#include "toy_oracle.h"

#include <stdlib.h>

// MARK: The group

typedef struct {
    uint64_t x, y;
    int is_infinite;
} Affine;

static uint64_t power(uint64_t a, uint64_t exponent, uint64_t modulus) {
    uint64_t r = 1;
    for (; exponent > 0; exponent /= 2, a = a * a % modulus)
        if (exponent % 2 == 1) r = r * a % modulus;
    return r;
}

static int is_prime(uint32_t a) {
    for (uint32_t d = 2; d * d <= a; d++)
        if (a % d == 0) return 0;
    return a > 1;
}

static int is_on_curve(uint64_t x, uint64_t y, uint64_t p, uint64_t b) {
    return y * y % p == (x * x % p * x + (p - 3) * x + b) % p;
}

/// The group's law with all of its cases.
static Affine affine_sum(Affine a, Affine b, uint64_t p) {
    if (a.is_infinite) return b;
    if (b.is_infinite) return a;
    if (a.x == b.x && (a.y + b.y) % p == 0) return (Affine){0, 0, 1};
    const uint64_t rise = a.x == b.x ? 3 * a.x * a.x + p - 3 : b.y + p - a.y;
    const uint64_t run = a.x == b.x ? 2 * a.y : b.x + p - a.x;
    const uint64_t slope = rise % p * power(run % p, p - 2, p) % p;
    const uint64_t x = (slope * slope + 2 * p - a.x - b.x) % p;
    return (Affine){x, (slope * (a.x + p - x) + p - a.y) % p, 0};
}

uint32_t number_of_point(const rg_toy_group *group, uint32_t x, uint32_t y) {
    for (uint32_t k = 1; k < group->order; k++)
        if (group->x[k] == x && group->y[k] == y) return k;
    return 0;
}

static Affine point(const rg_toy_group *group, uint32_t number) {
    return (Affine){group->x[number], group->y[number], number == 0};
}

/// Numbers the multiples of the first point. False when they are fewer than the order.
static int number_points(rg_toy_group *group, Affine first) {
    Affine sum = first;
    for (uint32_t k = 1; k < group->order; k++, sum = affine_sum(sum, first, group->p)) {
        if (sum.is_infinite) return 0;
        group->x[k] = (uint32_t)sum.x;
        group->y[k] = (uint32_t)sum.y;
    }
    return sum.is_infinite;
}

/// Whether the numbers add up as the points do, for all pairs.
static int is_group(const rg_toy_group *group) {
    for (uint32_t i = 0; i < group->order; i++)
        for (uint32_t j = 0; j < group->order; j++) {
            const Affine sum = affine_sum(point(group, i), point(group, j), group->p);
            const Affine expected = point(group, (i + j) % group->order);
            if (sum.x != expected.x || sum.y != expected.y || sum.is_infinite != expected.is_infinite) return 0;
        }
    return 1;
}

rg_toy_group *rg_toy_group_create(uint32_t p, uint32_t b) {
    if (!is_prime(p) || p >= ORDER_MAX) return 0;
    Affine first = {0, 0, 1};
    uint32_t order = 1;
    for (uint32_t x = 0; x < p; x++)
        for (uint32_t y = 0; y < p; y++)
            if (is_on_curve(x, y, p, b) && order++ == 1) first = (Affine){x, y, 0};
    if (!is_prime(order) || order >= p) return 0;
    rg_toy_group *group = calloc(1, sizeof *group);
    if (!group) return 0;
    group->p = p;
    group->b = b;
    group->order = order;
    if (number_points(group, first) && is_group(group)) return group;
    free(group);
    return 0;
}

void rg_toy_group_free(rg_toy_group *group) { free(group); }
uint32_t rg_toy_group_order(const rg_toy_group *group) { return group->order; }

// MARK: Scalars

uint32_t scalar_product(const rg_toy_group *group, uint64_t a, uint64_t b) {
    return (uint32_t)(a % group->order * (b % group->order) % group->order);
}

uint32_t scalar_inverse(const rg_toy_group *group, uint32_t a) {
    return (uint32_t)power(a, group->order - 2, group->order);
}

int is_valid(const rg_toy_group *group, uint32_t key, uint32_t u1, uint32_t u2, uint32_t r) {
    const uint32_t sum = (u1 + scalar_product(group, u2, key)) % group->order;
    return sum != 0 && group->x[sum] % group->order == r;
}

// MARK: The kernel's order of additions

enum { DIGITS_MAX = 8 };

/// A sum of integers that stand for multiples of the generator.
typedef struct {
    int64_t order, value;
    int is_begun, within_tree;
    Evaluation *evaluation;
} Trace;

static int64_t modulo(int64_t a, int64_t order) { return (a % order + order) % order; }

/// Adds a multiple of the generator. The first one is no addition.
static void add_term(Trace *trace, int64_t term) {
    if (trace->is_begun && trace->evaluation->first == NO_CASE) {
        if (modulo(trace->value - term, trace->order) == 0) trace->evaluation->first = EQUAL;
        if (modulo(trace->value + term, trace->order) == 0) trace->evaluation->first = OPPOSITE;
        if (trace->evaluation->first != NO_CASE) trace->evaluation->within_tree = trace->within_tree;
    }
    trace->value = trace->is_begun ? modulo(trace->value + term, trace->order) : modulo(term, trace->order);
    trace->is_begun = 1;
}

/// The digits of an odd number, by division: each is odd, and the next number is odd again. The last is what is left.
static void signed_digits(int64_t digit[DIGITS_MAX], int64_t odd, rg_toy_shape shape) {
    const int64_t base = (int64_t)1 << shape.width;
    for (int k = 0; k < shape.digits - 1; k++) {
        digit[k] = odd % (2 * base) - base;
        odd = (odd - digit[k]) / base;
    }
    digit[shape.digits - 1] = odd;
}

/// The table's multiple for each digit of u times `point`, place by place. An even u stands for u - order.
static void digit_terms(int64_t term[DIGITS_MAX], int64_t u, int64_t order, int64_t point, rg_toy_shape shape) {
    const int is_negated = u % 2 == 0;
    signed_digits(term, is_negated ? order - u : u, shape);
    for (int place = 0; place < shape.digits; place++) {
        const int64_t subtable = (int64_t)1 << (shape.width * shape.columns * (place / shape.columns));
        const int64_t digit = is_negated ? -term[place] : term[place];
        term[place] = modulo(digit * modulo(subtable * point, order), order);
    }
}

/// Sums by pairs, then pairs of pairs, and so on.
static int64_t tree_sum(int64_t *term, int count, int64_t order, Evaluation *evaluation) {
    for (int stride = 1; stride < count; stride *= 2)
        for (int k = 0; k + stride < count; k += 2 * stride) {
            Trace pair = {order, term[k], 1, 1, evaluation};
            add_term(&pair, term[k + stride]);
            term[k] = pair.value;
        }
    return term[0];
}

Evaluation evaluate(
    const rg_toy_curve *curve, const rg_toy_group *group, uint32_t key, uint32_t u1, uint32_t u2, int is_known,
    int by_tree) {
    const rg_toy_shape shape = is_known ? curve->known_key : curve->new_key, generator = curve->generator;
    const int64_t order = group->order;
    int64_t own[DIGITS_MAX], other[DIGITS_MAX];
    digit_terms(own, u2, order, key, shape);
    digit_terms(other, u1, order, 1, generator);
    Evaluation r = {NO_CASE, 0, 0};
    Trace trace = {order, 0, 0, 0, &r};
    for (int column = shape.columns - 1; column >= 0; column--) {
        trace.value = modulo(trace.value << shape.width, order);
        const int with_generator = is_known && column == 0;
        if (by_tree && is_known) {
            int64_t term[2 * DIGITS_MAX];
            int count = 0;
            for (int place = column; place < shape.digits; place += shape.columns) term[count++] = own[place];
            for (int k = 0; with_generator && k < generator.digits; k++) term[count++] = other[k];
            add_term(&trace, tree_sum(term, count, order, &r));
            continue;
        }
        for (int k = 0; with_generator && k < generator.digits; k++) add_term(&trace, other[k]);
        for (int place = column; place < shape.digits; place += shape.columns) add_term(&trace, own[place]);
    }
    if (!is_known && by_tree) add_term(&trace, tree_sum(other, generator.digits, order, &r));
    for (int k = 0; !is_known && !by_tree && k < generator.digits; k++) add_term(&trace, other[k]);
    r.sum = (uint32_t)trace.value;
    return r;
}
