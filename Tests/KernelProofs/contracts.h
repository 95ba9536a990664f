// The field by its contracts: what is proven of some functions by themselves (field_proof.h) stands in the place of
// these functions. Their results are unknown but for what the contract says.
#pragma once

#include "mutants.h"

/// Whether the mutant that is run is about this argument.
static int is_changed(const char *argument) { return mutant < MUTANT_COUNT && is(mutants[mutant], argument); }

#include "../../Sources/CKernels/p256/lanes.h"
#include "../../Sources/CKernels/p256/constants.h"
#include "../../Sources/CKernels/p256/bounds.h"
#include "claims.h"

// MARK: Limbs

#include "../../Sources/CKernels/p256/limbs.h"

/// Clean limbs of an unknown value in the range.
static void unknown_clean(lanes limb[LIMBS], Range value) {
    Range each[LIMBS];
    EACH_LIMB(i) each[i] = range(0, least(power(LIMB_BITS) - 1, value.high >> (52 * i)));
    new_group(limb, each, value);
}

/// Unknown limbs, between those of both, of a value between those of both.
static void unknown_between(lanes r[LIMBS], const lanes a[LIMBS], const lanes b[LIMBS]) {
    Range each[LIMBS];
    EACH_LIMB(i) {
        const lanes ai = as_signed(a[i]), bi = as_signed(b[i]);
        each[i] = join(range_of(&ai), range_of(&bi));
    }
    new_group(r, each, join(range_of_limbs(a), range_of_limbs(b)));
}

/// Whatever the mask is, the result is one of both.
static void chosen_limbs(lanes r[LIMBS], const lanes a[LIMBS], const lanes b[LIMBS], int are_digits) {
    if (!are_digits) {
        unknown_between(r, a, b);
        return;
    }
    // Digits, of which the low bits count: clean limbs, and anything above them.
    lanes low_a[LIMBS], low_b[LIMBS];
    EACH_LIMB(i) {
        low_part(&low_a[i], &a[i], LIMB_BITS);
        low_part(&low_b[i], &b[i], LIMB_BITS);
    }
    unknown_between(r, low_a, low_b);
    UNROLL(i, 0, LIMBS - 1) r[i] = plus(r[i], shift_left(unknown(range(-power(8), power(8))), LIMB_BITS));
}
static void proven_subtract_once(lanes limb[LIMBS], const uint64_t bound[LIMBS]) {
    claim_limbs(limb, LIMB_BITS, "subtraction of a modulus: from clean limbs");
    const Exact modulus = number_of(bound);
    const Range value = range_of_limbs(limb);
    const Range kept = range(value.low, least(value.high, modulus - 1));
    const Range less = range(greatest(value.low - modulus, 0), value.high - modulus);
    unknown_clean(limb, less.high < 0 ? kept : kept.low > kept.high ? less : join(kept, less));
}

#define choose_limbs(r, mask, a, b) ((void)(mask), chosen_limbs(r, a, b, is(#b, "divisor[k].limb[g]")))
#define subtract_once(limb, bound) (is_changed(#limb) ? (void)0 : proven_subtract_once(limb, bound))

// MARK: Products modulo p and n

#include "../../Sources/CKernels/p256/montgomery.h"

static void proven_montgomery(
    lanes product[LIMBS], const lanes a[LIMBS], const lanes b[LIMBS], const Modulus *modulus) {
    const Range ra = range_of_digits(a), rb = range_of_digits(b);
    const Range value = range((ra.low * rb.low) >> 260, ((ra.high * rb.high) >> 260) + number_of(modulus->limb));
    if (value.high >= power(260)) fail("Montgomery product: below 2^260");
    unknown_clean(product, value);
}
#define montgomery proven_montgomery

// The words of an inverse are any words. Another lane keeps the bounds.
#define broadcast(x) (is(#x, "value[i]") ? unknown(any_word) : broadcast(x))
#define neighbours(neighbouring, limb, distance) unknown_between(neighbouring, limb, limb)
#include "../../Sources/CKernels/p256/modulus.h"
#undef broadcast
#undef neighbours

// MARK: Sums

#include "../../Sources/CKernels/p256/sums.h"

/// h p less, where h is what stands above the low 48 bits of the top limb: case by case.
static Sum proven_reduce_weakly(Sum a) {
    const Exact p = p_number();
    EACH_GROUP(g) {
        const lanes top = as_signed(a.limb[g][4]);
        const Range top_range = range_of(&top), before = range_of_limbs(a.limb[g]);
        lanes rest[LIMBS];
        EACH_LIMB(i) rest[i] = i < LIMBS - 1 ? a.limb[g][i] : zero_lanes();
        Range rest_range = range_of_limbs(rest), value = range(1, 0);
        rest_range.high += power(256) - power(208);
        for (Exact h = top_range.low >> 48; h <= top_range.high >> 48; h++) {
            const Range one = meet(before, sum_of_ranges(rest_range, range(h << 256, h << 256)));
            if (one.low > one.high) continue;
            const Range reduced =
                range(greatest(one.low - h * p, 0), least(one.high - h * p, p + (h + 1) * power(225)));
            value = value.low > value.high ? reduced : join(value, reduced);
        }
        Sum single;
        memset(&single, 0, sizeof single);
        EACH_LIMB(i) single.limb[g][i] = a.limb[g][i];
        single = reduce_weakly(single);
        Range each[LIMBS];
        EACH_LIMB(i) {
            const lanes limb = as_signed(single.limb[g][i]);
            each[i] = range_of(&limb);
        }
        new_group(a.limb[g], each, value);
    }
    return a;
}
#define reduce_weakly(a) (is_changed(#a) ? (a) : proven_reduce_weakly(a))
#define add_p(a, k) add_p(a, (k)-is_changed(#a))

// MARK: Products

#include "../../Sources/CKernels/p256/products.h"

/// What a reduction leaves of a b, or of a b + c d.
static Sum proven_reduction(const Digits *a, const Digits *b, const Digits *c, const Digits *d) {
    Sum r;
    EACH_GROUP(g) {
        const Range ra = range_of_digits(a->limb[g]), rb = range_of_digits(b->limb[g]);
        Range quantity = range(ra.low * rb.low, ra.high * rb.high);
        if (c) {
            const Range rc = range_of_digits(c->limb[g]), rd = range_of_digits(d->limb[g]);
            quantity = sum_of_ranges(quantity, range(rc.low * rd.low, rc.high * rd.high));
        }
        const Range value = range(quantity.low >> 260, (quantity.high >> 260) + p_number());
        Range each[LIMBS];
        EACH_LIMB(i) each[i] = range(0, least(power(57) - 1, value.high >> (52 * i)));
        new_group(r.limb[g], each, value);
    }
    return r;
}
#define product(a, b) proven_reduction(a, b, 0, 0)
#define square(a) proven_reduction(a, a, 0, 0)
#define square_plus_product(a, b, c) proven_reduction(a, a, b, c)
#define product_plus_product(a, b, c, d) proven_reduction(a, b, c, d)
