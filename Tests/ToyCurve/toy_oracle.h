// What the kernel is to say about a signature over a small curve: by plain affine arithmetic, by the definition of
// ECDSA, and by the order of its additions, as integers modulo the order.
#pragma once

#include "include/ToyCurve.h"

enum { ORDER_MAX = 2048 };

struct rg_toy_group {
    uint32_t p, b, order;
    uint32_t x[ORDER_MAX], y[ORDER_MAX];
};

/// The first addition of an evaluation that its formula does not hold for.
typedef enum {
    NO_CASE,
    /// Of a point and itself.
    EQUAL,
    /// Of a point and its opposite.
    OPPOSITE,
} Case;

typedef struct {
    Case first;
    int within_tree;
    /// The sum's number, or that of its opposite; only without an exceptional case.
    uint32_t sum;
} Evaluation;

/// The number of the point with these coordinates; 0 when there is none.
uint32_t number_of_point(const rg_toy_group *group, uint32_t x, uint32_t y);

/// a b and 1 / a modulo the order.
uint32_t scalar_product(const rg_toy_group *group, uint64_t a, uint64_t b);
uint32_t scalar_inverse(const rg_toy_group *group, uint32_t a);

/// Follows the additions of u1 G + u2 Q, Q = key G, in the kernel's order.
Evaluation evaluate(
    const rg_toy_curve *curve, const rg_toy_group *group, uint32_t key, uint32_t u1, uint32_t u2, int is_known,
    int by_tree);

/// Whether u1 G + u2 Q is finite and has an x that is r modulo the order.
int is_valid(const rg_toy_group *group, uint32_t key, uint32_t u1, uint32_t u2, uint32_t r);
