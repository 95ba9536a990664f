// The first level: the functions of the field keep their contracts, for all inputs. The including file defines the kind
// of lanes (symbolic_lanes.h), and PROOF.
#include "include/KernelProofs.h"

#define FORM_TERMS 192
#define FORM_MEMORY 4096
#define FORKS 1
#define KERNEL_CHECKS
#define GROUPS 1
#define LANES_FILE "../../../Tests/KernelProofs/symbolic_lanes.h"

#define MUTANTS(MUTANT)                                                          \
    MUTANT(borrow, "the borrow of a subtraction is dropped")                     \
    MUTANT(words, "a word is shifted by a bit less")                             \
    MUTANT(mask, "a limb of a product modulo n is not masked")                   \
    MUTANT(multiple_of_p, "the limbs of k p are 1 too large")                    \
    MUTANT(digits_carry, "a carry of digits is dropped")                         \
    MUTANT(fold, "a weak reduction folds with a bit less")                       \
    MUTANT(weak_mask, "a weak reduction does not mask the bits that it folds")   \
    MUTANT(carry, "the carry of a reduction is dropped")                         \
    MUTANT(high_part, "the upper half of a reduction's last product is dropped") \
    MUTANT(accumulator, "an accumulator starts with 1")                          \
    MUTANT(squares, "a square doubles nothing")

#include "mutants.h"

#include "../../Sources/CKernels/p256/lanes.h"
#include "../../Sources/CKernels/p256/constants.h"
#include "../../Sources/CKernels/p256/bounds.h"
#include "claims.h"

#define carry_of(limb) (IS_MUTANT(borrow) ? zero_lanes() : carry_of(limb))
#define shift_left(a, bits) shift_left(a, (bits)-WHEN_MUTANT(words, 1))
#include "../../Sources/CKernels/p256/limbs.h"
#undef carry_of
#undef shift_left

// A product modulo p or n is below 2^260 only for some factors. Who calls it claims that (contracts.h).
#undef check_limbs
#define check_limbs(limb, bits, bound) ((void)0)
#define low_bits(limb) (IS_MUTANT(mask) ? (limb) : low_bits(limb))
#include "../../Sources/CKernels/p256/montgomery.h"
#undef low_bits
#undef check_limbs
#define check_limbs claim_limbs

#define broadcast(x) broadcast((x) + (is(#x, "(uint64_t)limb[i]") ? WHEN_MUTANT(multiple_of_p, 1) : 0))
#define carry_of(limb) (IS_MUTANT(digits_carry) ? zero_lanes() : carry_of(limb))
#define shift_right(a, bits) (IS_MUTANT(digits_carry) && is(#a, "a.limb[g][i]") ? zero_lanes() : shift_right(a, bits))
#define shift_left(a, bits) shift_left(a, (bits)-WHEN_MUTANT(fold, 1))
#define bit_and(a, b) (IS_MUTANT(weak_mask) ? (a) : bit_and(a, b))
#include "../../Sources/CKernels/p256/sums.h"
#undef broadcast
#undef carry_of
#undef shift_right
#undef shift_left
#undef bit_and

#define shift_right(a, bits) (IS_MUTANT(carry) && is(#a, "limb") ? zero_lanes() : shift_right(a, bits))
#define add_high(sum, a, b) (IS_MUTANT(high_part) && is(#b, "at256") ? (sum) : add_high(sum, a, b))
#define accumulator(k, halves) plus(accumulator(k, halves), broadcast((k) == 0 ? WHEN_MUTANT(accumulator, 1) : 0))
#define plus(a, b) (IS_MUTANT(squares) && is(#a, "t[g][k]") && is(#b, "t[g][k]") ? (a) : plus(a, b))
#include "../../Sources/CKernels/p256/products.h"
#undef shift_right
#undef add_high
#undef accumulator
#undef plus

#include "proof_run.h"

// MARK: Inputs

/// Any digits: limbs of which nothing is known.
static Digits any_digits(void) {
    Digits r;
    EACH_LIMB(i) r.limb[0][i] = unknown(any_word);
    return r;
}

/// The value of the low 52 bits of the limbs.
static void digits_value(Form *r, const lanes limb[LIMBS]) {
    lanes low[LIMBS];
    EACH_LIMB(i) low_part(&low[i], &limb[i], LIMB_BITS);
    value_of(r, low);
}

/// r += a b, of the low 52 bits of the limbs.
static void add_product(Form *r, const lanes a[LIMBS], const lanes b[LIMBS]) {
    for (int i = 0; i < LIMBS; i++)
        for (int j = 0; j < LIMBS; j++) {
            Form ai, bj;
            low_part(&ai, &a[i], LIMB_BITS);
            low_part(&bj, &b[j], LIMB_BITS);
            Form part = product_of_forms(&ai, &bj);
            shift_form(&part, &part, 52 * (i + j));
            add_multiple(r, r, &part, 1);
        }
}

// MARK: Claims

/// The form is 0 for all values of the atoms.
static void claim_zero(const Form *a, const char *what) {
    const Form zero = constant_form(0);
    if (!is_same(a, &zero)) fail(what);
}

/// The form is m times the modulus, with m from 0 to 2^260 - 1.
static void claim_multiple(const Form *a, Exact modulus, const char *what) {
    Form m = *a;
    if (m.constant % modulus != 0) fail(what);
    m.constant /= modulus;
    for (int k = 0; k < m.count; k++) {
        if (m.term[k].coefficient % modulus != 0) fail(what);
        m.term[k].coefficient /= modulus;
    }
    m.range = range(-power(600), power(600));
    const Range known = range_by_terms(&m);
    if (known.low < 0 || known.high >= power(260)) fail(what);
}

/// `r` times 2^260 is the quantity plus m p, and the limbs of r are from 0 to 2^57 - 1.
static void claim_reduced(const Sum *r, const Form *quantity) {
    Form value;
    EACH_LIMB(i) {
        const lanes limb = as_unsigned(r->limb[0][i]);
        const Range known = range_of(&limb);
        if (known.high >= power(57)) fail("a limb of a product is below 2^57");
        Form part;
        shift_form(&part, &limb, 52 * i);
        if (i == 0) {
            value = part;
        } else {
            add_multiple(&value, &value, &part, 1);
        }
    }
    shift_form(&value, &value, 260);
    add_multiple(&value, &value, quantity, -1);
    claim_multiple(&value, p_number(), "a product is congruent, and m is below 2^260");
}

static void prove_products(void) {
    const Digits a = any_digits(), b = any_digits(), c = any_digits(), d = any_digits();
    Form quantity = constant_form(0);
    proof_place = "product";
    add_product(&quantity, a.limb[0], b.limb[0]);
    Sum r = product(&a, &b);
    claim_reduced(&r, &quantity);

    proof_place = "product_plus_product";
    add_product(&quantity, c.limb[0], d.limb[0]);
    r = product_plus_product(&a, &b, &c, &d);
    claim_reduced(&r, &quantity);

    proof_place = "square";
    quantity = constant_form(0);
    add_product(&quantity, a.limb[0], a.limb[0]);
    r = square(&a);
    claim_reduced(&r, &quantity);

    proof_place = "square_plus_product";
    add_product(&quantity, b.limb[0], c.limb[0]);
    r = square_plus_product(&a, &b, &c);
    claim_reduced(&r, &quantity);
}

static void prove_montgomery(const Modulus *modulus, const char *place) {
    const Digits a = any_digits(), b = any_digits();
    Form quantity = constant_form(0), value;
    lanes r[LIMBS];
    proof_place = place;
    add_product(&quantity, a.limb[0], b.limb[0]);
    montgomery(r, a.limb[0], b.limb[0], modulus);
    UNROLL(i, 0, LIMBS - 1) claim_below_power(r[i], LIMB_BITS, "the lower limbs are clean");
    claim_below_power(r[LIMBS - 1], 57, "the top limb is below 2^57");
    signed_value(&value, r);
    shift_form(&value, &value, 260);
    add_multiple(&value, &value, &quantity, -1);
    claim_multiple(&value, number_of(modulus->limb), "a product is congruent, and the multiple is below 2^260");
}

/// Limbs of a sum: below 2^61 in magnitude, with a value in the range.
static Sum any_sum(Range value) {
    Range limb[LIMBS];
    for (int i = 0; i < LIMBS; i++) limb[i] = range(1 - power(60), power(60) - 1);
    Sum r;
    new_group(r.limb[0], limb, value);
    return r;
}
/// Clean limbs with a value in the range.
static void any_clean(lanes r[LIMBS], Range value) {
    Range limb[LIMBS];
    for (int i = 0; i < LIMBS; i++) limb[i] = range(0, power(LIMB_BITS) - 1);
    new_group(r, limb, value);
}

/// a - b - k is 0, where a and b are values of limbs.
static void claim_difference(const lanes a[LIMBS], const lanes b[LIMBS], Exact k, const char *what) {
    Form av, bv, constant = constant_form(k);
    signed_value(&av, a);
    signed_value(&bv, b);
    add_multiple(&av, &av, &bv, -1);
    add_multiple(&av, &av, &constant, -1);
    const Range known = range_of(&av);
    if (known.low != 0 || known.high != 0) fail(what);
}

static void prove_sums(void) {
    const Range any_value = range(-power(270), power(270));
    const Exact p = p_number();
    Sum a = any_sum(any_value), b = any_sum(any_value);
    // Half as large, so that the sum is one, too.
    EACH_LIMB(i) {
        atoms[a.limb[0][i].term[0].atom].range = range(1 - power(59), power(59) - 1);
        atoms[b.limb[0][i].term[0].atom].range = range(1 - power(59), power(59) - 1);
        a.limb[0][i].range = b.limb[0][i].range = range(1 - power(59), power(59) - 1);
    }
    proof_place = "add_p";
    for (int k = -8; k <= 8; k++) claim_difference(add_p(a, k).limb[0], a.limb[0], k * p, "k p is added");
    proof_place = "subtract";
    const Sum back = add(subtract(a, b), b);
    claim_difference(back.limb[0], a.limb[0], 0, "a - b + b is a");

    proof_place = "digits";
    const Sum sum = any_sum(range(0, power(260) - 1));
    Digits carried = digits(sum);
    lanes low[LIMBS];
    EACH_LIMB(i) low_part(&low[i], &carried.limb[0][i], LIMB_BITS);
    claim_difference(low, sum.limb[0], 0, "digits keep the value");

    proof_place = "product_digits";
    Sum product;
    Range limb[LIMBS];
    for (int i = 0; i < LIMBS; i++) limb[i] = range(0, power(61) - 1);
    new_group(product.limb[0], limb, range(0, power(260) - 1));
    carried = product_digits(product);
    EACH_LIMB(i) low_part(&low[i], &carried.limb[0][i], LIMB_BITS);
    claim_difference(low, product.limb[0], 0, "digits keep the value");
}

/// A weak reduction takes h p off, where h is what stands above the low 48 bits of the top limb. The result is from 0
/// to p + 2^225 (h + 1).
static void prove_weak_reduction(void) {
    proof_place = "reduce_weakly";
    for (int is_large = 0; is_large < 2; is_large++) {
        Sum a = any_sum(range(0, 4096 * p_number()));
        // h is 0, or not.
        const Range top = is_large ? range(power(48), power(60) - 1) : range(0, power(48) - 1);
        a.limb[0][4].range = atoms[a.limb[0][4].term[0].atom].range = top;
        const lanes h = shift_right(a.limb[0][4], 48);
        const Sum reduced = reduce_weakly(a);
        Form multiple, after, limit = constant_form(p_number() + power(225));
        const Form zero = constant_form(0);
        add_multiple(&multiple, &zero, &h, p_number());
        signed_value(&after, reduced.limb[0]);
        Form before;
        signed_value(&before, a.limb[0]);
        add_multiple(&before, &before, &multiple, -1);
        add_multiple(&before, &before, &after, -1);
        claim_zero(&before, "h p is taken off");
        if (range_of(&after).low < 0) fail("the result is not negative");
        Form part;
        shift_form(&part, &h, 225);
        add_multiple(&after, &after, &limit, -1);
        add_multiple(&after, &after, &part, -1);
        if (range_of(&after).high > 0) fail("the result is at most p + 2^225 (h + 1)");
    }
}

static const uint64_t *bound_limbs;

static void prove_comparison(void) {
    proof_place = "subtract_once";
    const Exact bound = number_of(bound_limbs);
    lanes a[LIMBS], r[LIMBS], b[LIMBS];
    any_clean(a, range(0, power(260) - 1));
    EACH_LIMB(i) r[i] = a[i], b[i] = broadcast(bound_limbs[i]);
    subtract_once(r, bound_limbs);
    EACH_LIMB(i) claim_below_power(r[i], LIMB_BITS, "clean limbs");
    // The decision of `subtract_once` stands in the equations, so the comparison decides alike.
    const lane_mask below = is_below(a, bound_limbs);
    const Range known = range_of_limbs(a);
    if (below && known.high >= bound) fail("a is below the bound");
    if (!below && known.low < bound) fail("a is not below the bound");
    claim_difference(r, a, below ? 0 : -bound, "the bound is taken off where a is not below it");
    const Range result = range_of_limbs(r);
    if (result.low < 0 || result.high > greatest(bound - 1, power(260) - 1 - bound)) fail("the result is small");

    proof_place = "subtract_from";
    lanes c[LIMBS];
    any_clean(c, range(0, bound));
    subtract_from(r, bound_limbs, c);
    EACH_LIMB(i) claim_below_power(r[i], LIMB_BITS, "clean limbs");
    Form sum, part;
    value_of(&sum, r);
    value_of(&part, c);
    add_multiple(&sum, &sum, &part, 1);
    const Range total = range_of(&sum);
    if (total.low != bound || total.high != bound) fail("the bound less c");
}

/// Words become limbs of the same value, and limbs below 2^256 become the same words again.
static void prove_words(void) {
    proof_place = "limbs_of_words";
    lanes word[4], limb[LIMBS], again[4];
    Form sum = constant_form(0), value;
    for (int i = 0; i < 4; i++) {
        Form part;
        word[i] = unknown(any_word);
        shift_form(&part, &word[i], 64 * i);
        add_multiple(&sum, &sum, &part, 1);
    }
    limbs_of_words(limb, word);
    EACH_LIMB(i) claim_below_power(limb[i], LIMB_BITS, "clean limbs");
    value_of(&value, limb);
    add_multiple(&sum, &sum, &value, -1);
    claim_zero(&sum, "limbs have the value of the words");
    words_of_limbs(again, limb);
    for (int i = 0; i < 4; i++) {
        const lanes difference = minus(as_unsigned(again[i]), word[i]);
        claim_zero(&difference, "the words come back");
    }
}

static void prove_all(void) {
    prove_products();
    prove_montgomery(&FIELD_PRIME, "montgomery modulo p");
    prove_montgomery(&GROUP_ORDER, "montgomery modulo n");
    prove_sums();
    prove_weak_reduction();
    prove_words();
    bound_limbs = P_LIMBS;
    for_all_decisions(prove_comparison);
    bound_limbs = N_LIMBS;
    for_all_decisions(prove_comparison);
}

static long run(size_t chosen, const char **failed, rg_claim claims[256], size_t *written) {
    (void)claims;
    *written = 0;
    return run_proof(chosen, failed, prove_all);
}

extern const rg_proof PROOF;
const rg_proof PROOF = {LANES_OF, LANES, GROUPS, HAS_SIGNED_SHIFTS, SHIFTS_ARE_QUICKER, run, mutants, MUTANT_COUNT};
