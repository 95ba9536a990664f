#include <stdlib.h>
#include <string.h>

#include "toy_oracle.h"

/// The number of the opposite point.
static uint32_t opposite(const rg_toy_group *group, uint32_t a) { return (group->order - a) % group->order; }

/// (x z^2, 2 y z^3, z) of a point.
static rg_toy_jacobian jacobian(const rg_toy_group *group, uint32_t number, uint32_t z) {
    const uint64_t p = group->p, zz = (uint64_t)z * z % p;
    return (rg_toy_jacobian){
        (uint32_t)(group->x[number] * zz % p), (uint32_t)(2 * group->y[number] * zz % p * z % p), z};
}

static rg_toy_affine affine(const rg_toy_group *group, uint32_t number) {
    return (rg_toy_affine){group->x[number], 2 * group->y[number] % group->p};
}

/// Whether the Jacobian point is that one. Infinity has Z = 0.
static int is_point(const rg_toy_group *group, rg_toy_jacobian a, uint32_t number) {
    const rg_toy_jacobian expected = jacobian(group, number, a.z);
    return a.z != 0 && number != 0 && a.x == expected.x && a.v == expected.v;
}

// MARK: Additions and doublings

enum { LANES_MAX = 1024 };

/// Lanes that wait for a call of the formula.
typedef struct {
    const rg_toy_curve *curve;
    const rg_toy_group *group;
    size_t count;
    rg_toy_jacobian point[LANES_MAX];
    rg_toy_affine addend[LANES_MAX];
    uint8_t is_negative[LANES_MAX];
    /// The result's number before V is flipped; 0 where Z has to be 0.
    uint32_t expected[LANES_MAX];
    rg_toy_formula_tally tally;
} Lanes;

static Lanes *begin_lanes(const rg_toy_curve *curve, const rg_toy_group *group) {
    Lanes *lanes = calloc(1, sizeof *lanes);
    if (!lanes) abort();
    lanes->curve = curve;
    lanes->group = group;
    return lanes;
}

static void run_lanes(Lanes *lanes, int is_doubling) {
    const size_t width = lanes->curve->functions.width, count = lanes->count;
    if (count == 0) return;
    // Lanes that fill the last vector, like its first one.
    size_t end = count;
    for (; end % width != 0; end++) {
        lanes->point[end] = lanes->point[0];
        lanes->addend[end] = lanes->addend[0];
        lanes->is_negative[end] = lanes->is_negative[0];
    }
    if (is_doubling)
        lanes->curve->twice(lanes->point, end);
    else
        lanes->curve->add(lanes->point, lanes->addend, lanes->is_negative, end);
    for (size_t k = 0; k < count; k++) {
        const uint32_t expected = lanes->expected[k];
        lanes->tally.lanes++;
        lanes->tally.exceptional += expected == 0;
        lanes->tally.wrong += expected == 0
            ? lanes->point[k].z != 0
            : !is_point(lanes->group, lanes->point[k], opposite(lanes->group, expected));
    }
    lanes->count = 0;
}

static void add_lane(
    Lanes *lanes, int is_doubling, rg_toy_jacobian point, uint32_t addend, int is_negative, uint32_t expected) {
    const size_t k = lanes->count++;
    lanes->point[k] = point;
    lanes->addend[k] = affine(lanes->group, addend);
    lanes->is_negative[k] = (uint8_t)is_negative;
    lanes->expected[k] = expected;
    if (lanes->count == LANES_MAX) run_lanes(lanes, is_doubling);
}

static rg_toy_formula_tally end_lanes(Lanes *lanes, int is_doubling) {
    run_lanes(lanes, is_doubling);
    const rg_toy_formula_tally tally = lanes->tally;
    free(lanes);
    return tally;
}

rg_toy_formula_tally rg_toy_add_all(const rg_toy_curve *curve, const rg_toy_group *group, uint32_t step) {
    Lanes *lanes = begin_lanes(curve, group);
    const uint32_t order = group->order, p = group->p;
    for (uint32_t addend = 1; addend < order; addend++)
        for (int is_negative = 0; is_negative < 2; is_negative++) {
            const uint32_t own = is_negative ? opposite(group, addend) : addend;
            for (uint32_t point = 1; point < order; point++) {
                const int has_same_x = point == own || point == opposite(group, own);
                for (uint32_t z = 1 + (addend + point) % step; z < p; z += step)
                    add_lane(
                        lanes, 0, jacobian(group, point, z), addend, is_negative,
                        has_same_x ? 0 : (point + own) % order);
            }
            // Zero in both of its forms: as 0, and as p.
            for (uint32_t x = addend % step; x < p; x += step)
                for (uint32_t v = addend % step; v < p; v += step)
                    add_lane(lanes, 0, (rg_toy_jacobian){x, v, (x + v) % 2 * p}, addend, is_negative, 0);
        }
    return end_lanes(lanes, 0);
}

rg_toy_formula_tally rg_toy_double_all(const rg_toy_curve *curve, const rg_toy_group *group, uint32_t step) {
    Lanes *lanes = begin_lanes(curve, group);
    const uint32_t order = group->order, p = group->p;
    for (uint32_t point = 1; point < order; point++)
        for (uint32_t z = 1 + point % step; z < p; z += step)
            add_lane(lanes, 1, jacobian(group, point, z), 0, 0, 2 * point % order);
    for (uint32_t x = 0; x < p; x += step)
        for (uint32_t v = 0; v < p; v += step) add_lane(lanes, 1, (rg_toy_jacobian){x, v, (x + v) % 2 * p}, 0, 0, 0);
    return end_lanes(lanes, 1);
}

// MARK: Chains

rg_toy_formula_tally rg_toy_chain_all(const rg_toy_curve *curve, const rg_toy_group *group, size_t length) {
    rg_toy_formula_tally tally = {0, 0, 0};
    const size_t width = curve->functions.width;
    rg_toy_jacobian *multiple = calloc(width * length, sizeof *multiple);
    rg_toy_affine *point = calloc(width, sizeof *point);
    if (!multiple || !point) abort();
    for (uint32_t first = 1; first < group->order; first += (uint32_t)width) {
        for (uint32_t lane = 0; lane < width; lane++)
            point[lane] = affine(group, first + lane < group->order ? first + lane : 1);
        curve->chain(multiple, point, length, width);
        for (uint32_t lane = 0; lane < width && first + lane < group->order; lane++) {
            int is_exceptional = 0;
            for (uint32_t k = 0; k < length; k++) {
                const uint32_t odd = 2 * k + 1, number = scalar_product(group, odd, first + lane);
                // It adds 2 P to (odd - 2) P.
                if (odd % group->order == 0 || (k > 0 && odd % group->order == 4)) is_exceptional = 1;
                const rg_toy_jacobian own = multiple[lane * length + k];
                tally.lanes++;
                tally.exceptional += (size_t)is_exceptional;
                tally.wrong += is_exceptional ? own.z != 0 : !is_point(group, own, number);
            }
        }
    }
    free(multiple);
    free(point);
    return tally;
}

// MARK: Trees

enum { TUPLE_MAX = 4 };

/// The sum of a tuple by pairs; 0 when two of its points have the same x.
static uint32_t pairwise_sum(const rg_toy_group *group, const uint32_t *number, size_t count) {
    if (count == 1) return number[0];
    const size_t half = count > 2 ? 2 : 1;
    const uint32_t a = pairwise_sum(group, number, half), b = pairwise_sum(group, number + half, count - half);
    return a == 0 || b == 0 || a == b ? 0 : (a + b) % group->order;
}

/// Tuple `index` of all: its points' numbers are the digits.
static void numbers_of(uint32_t number[TUPLE_MAX], const rg_toy_group *group, uint64_t index, size_t points) {
    for (size_t k = 0; k < points; k++, index /= group->order - 1)
        number[k] = (uint32_t)(index % (group->order - 1)) + 1;
}

rg_toy_formula_tally rg_toy_sum_all(const rg_toy_curve *curve, const rg_toy_group *group, size_t points) {
    rg_toy_formula_tally tally = {0, 0, 0};
    rg_toy_affine *leaf = calloc(LANES_MAX * points, sizeof *leaf);
    uint8_t *is_undecided = calloc(LANES_MAX, 1);
    if (!leaf || !is_undecided) abort();
    uint64_t total = 1;
    for (size_t k = 0; k < points; k++) total *= group->order - 1;
    for (uint64_t first = 0; first < total; first += LANES_MAX) {
        uint32_t number[TUPLE_MAX];
        // Behind the last tuple the first ones fill the vectors.
        for (uint64_t lane = 0; lane < LANES_MAX; lane++) {
            numbers_of(number, group, (first + lane) % total, points);
            for (size_t k = 0; k < points; k++) leaf[lane * points + k] = affine(group, number[k]);
        }
        curve->sum(leaf, points, LANES_MAX, is_undecided);
        for (uint64_t lane = 0; lane < LANES_MAX && first + lane < total; lane++) {
            numbers_of(number, group, first + lane, points);
            const uint32_t sum = pairwise_sum(group, number, points);
            const rg_toy_affine own = leaf[lane * points], expected = affine(group, sum);
            tally.lanes++;
            tally.exceptional += sum == 0;
            tally.wrong += is_undecided[lane] != (sum == 0);
            tally.wrong += sum != 0 && (own.x != expected.x || own.y2 != expected.y2);
        }
    }
    free(leaf);
    free(is_undecided);
    return tally;
}
