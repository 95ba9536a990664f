// The first level for the field of words: values stay below p, and are congruent to what they should be.
#include "include/KernelProofs.h"

#define SYMBOLIC_LANES 1
#define SYMBOLIC_DOUBLES 0
#define SYMBOLIC_SHIFTS_ARE_QUICKER 1
#define SYMBOLIC_SIGNED_SHIFTS 1
#define FORM_FRACTION 1280
#define GROUP_SIZE 4
#define GROUP_BITS 64
#define FORM_TERMS 160
#define FORM_MEMORY 4096
#define FORKS 1
#define KERNEL_CHECKS
#define GROUPS 1
#define LANES_FILE "../../../Tests/KernelProofs/symbolic_lanes.h"
#define WORDS_FILE "../../../Tests/KernelProofs/symbolic_words.h"

#define MUTANTS(MUTANT)                                                                  \
    MUTANT(prime, "p is taken off a value that is p")                                    \
    MUTANT(kept, "p is not taken off")                                                   \
    MUTANT(row_carry, "the carry into the highest word of a row is dropped")             \
    MUTANT(reduction, "the reduction takes the upper half of m off, and not the borrow") \
    MUTANT(negative, "a negative difference gets no p")                                  \
    MUTANT(squares, "a square doubles nothing")

#include "mutants.h"

#include "../../Sources/CKernels/p256/lanes.h"
#include "../../Sources/CKernels/p256/bounds.h"
#include "symbolic_words.h"
#include "proof_run.h"

#undef kernel_check
static void claim(int holds, const char *bound) {
    if (!holds) fail(bound);
}
#define kernel_check claim

#define choose_word(condition, a, b) choose_word(IS_MUTANT(kept) ? word_of_number(1) : (condition), a, b)
#define subtract_words(a, b, borrow) \
    subtract_words(a, b, is(#a, "t[4]") && IS_MUTANT(prime) ? (*(borrow) = word_of_number(0), (borrow)) : (borrow))
#include "../../Sources/CKernels/p256/value_words.h"
#undef choose_word
#undef subtract_words

/// The last value that was to be reduced: five words.
static word unreduced[5];
static Sum captured(const word t[5]) {
    Range each[4];
    Sum r;
    UNROLL(i, 0, 5) unreduced[i] = t[i];
    UNROLL(i, 0, 4) each[i] = any_word;
    new_group(r.limb[0], each, range(0, 0));
    r.limb[0][4] = zero_lanes();
    return r;
}
#define without_prime captured
#define sum_of_words(a, b) (IS_MUTANT(row_carry) && is(#b, "carry") ? (a) : sum_of_words(a, b))
#define difference_of_words(a, b) (IS_MUTANT(reduction) && is(#b, "borrow") ? (a) : difference_of_words(a, b))
#define choose_word(condition, a, b) choose_word(IS_MUTANT(negative) ? word_of_number(0) : (condition), a, b)
#define add_words(a, b, carry) (IS_MUTANT(squares) && is(#a, "t[i]") && is(#b, "t[i]") ? (a) : add_words(a, b, carry))
#include "../../Sources/CKernels/p256/field_words.h"
#undef without_prime
#undef sum_of_words
#undef difference_of_words
#undef choose_word
#undef add_words

static Exact prime(void) {
    Exact r = 0;
    for (int i = 3; i >= 0; i--) r = (r << 64) + (Exact)P_WORDS[i];
    return r;
}

/// Words of an unknown value in the range.
static Digits any_value(Range value) {
    Range each[4];
    Digits r;
    UNROLL(i, 0, 4) each[i] = any_word;
    new_group(r.limb[0], each, value);
    r.limb[0][4] = zero_lanes();
    return r;
}

/// The sum of word i times 2^(64 i).
static void value_of_all(Form *r, const word *words, int count) {
    *r = constant_form(0);
    for (int i = 0; i < count; i++) {
        Form part;
        shift_form(&part, &words[i], 64 * i);
        add_multiple(r, r, &part, 1);
    }
}

/// The form is a multiple of p for all values of the atoms.
static void claim_congruent(const Form *a, const char *what) {
    const Exact p = prime();
    if (a->constant % p != 0) fail(what);
    for (int k = 0; k < a->count; k++)
        if (a->term[k].coefficient % p != 0) fail(what);
}

/// The value that was to be reduced is below 2 p, and times 2^bits it is the quantity and a multiple of p.
static void claim_unreduced(const Form *quantity, int bits) {
    Form value, difference;
    value_of_all(&value, unreduced, 5);
    shift_form(&difference, &value, bits);
    add_multiple(&difference, &difference, quantity, -1);
    claim_congruent(&difference, "a value is congruent to what it should be");
    const Range known = range_of(&value);
    if (known.low < 0 || known.high >= 2 * prime()) fail("a value is below 2 p before it is reduced");
}

/// A value below 2 p becomes the one below p that is congruent.
static void prove_reduction(void) {
    proof_place = "without_prime";
    Digits lower = any_value(range(0, 2 * prime() - 1));
    word t[5];
    // The fifth word: the group has four, so the value is that of the four and the fifth.
    const word top = unknown(range(0, 1));
    UNROLL(i, 0, 4) t[i] = lower.limb[0][i];
    t[4] = top;
    Form value;
    value_of_all(&value, t, 5);
    // The equation says that the value is one below 2 p.
    const Form whole = unknown(range(0, 2 * prime() - 1));
    add_multiple(&equations[equation_count++].form, &value, &whole, -1);
    const Sum r = without_prime(t);
    Form result;
    value_of(&result, r.limb[0]);
    const Range known = range_of(&result);
    if (known.low < 0 || known.high >= prime()) fail("a value is below p");
    add_multiple(&result, &result, &whole, -1);
    const Range difference = range_of(&result);
    if (difference.low != difference.high || (difference.low != 0 && difference.low != -prime()))
        fail("p is taken off once, or not at all");
}

/// What is known of the products of the words of b by word a: together they are below 2^64 p.
static void know_products(const word *a, const Digits *b) {
    Form sum = constant_form(0);
    for (int k = 0; k < 4; k++) {
        Form part = product_of_forms(a, &b->limb[0][k]);
        shift_form(&part, &part, 64 * k);
        add_multiple(&sum, &sum, &part, 1);
    }
    const Form value = unknown(range(0, (power(64) - 1) * (prime() - 1)));
    add_multiple(&equations[equation_count++].form, &sum, &value, -1);
}

/// The sum of a_i b_k 2^(64 (i + k)).
static void product_of_values(Form *r, const Digits *a, const Digits *b) {
    *r = constant_form(0);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++) {
            Form part = product_of_forms(&a->limb[0][i], &b->limb[0][k]);
            shift_form(&part, &part, 64 * (i + k));
            add_multiple(r, r, &part, 1);
        }
}

static void prove_product(void) {
    proof_place = "product";
    const Digits a = any_value(range(0, power(256) - 1)), b = any_value(range(0, prime() - 1));
    Form quantity;
    product_of_values(&quantity, &a, &b);
    product(&a, &b);
    for (int i = 0; i < 4; i++) know_products(&a.limb[0][i], &b);
    claim_unreduced(&quantity, 256);
}

static void prove_square(void) {
    proof_place = "square";
    const Digits a = any_value(range(0, prime() - 1));
    Form quantity;
    product_of_values(&quantity, &a, &a);
    square(&a);
    const Form value = unknown(range(0, (prime() - 1) * (prime() - 1)));
    add_multiple(&equations[equation_count++].form, &quantity, &value, -1);
    claim_unreduced(&quantity, 256);
}

static void prove_sum(void) {
    proof_place = "add";
    const Digits a = any_value(range(0, prime() - 1)), b = any_value(range(0, prime() - 1));
    Form quantity, part;
    value_of(&quantity, a.limb[0]);
    value_of(&part, b.limb[0]);
    add_multiple(&quantity, &quantity, &part, 1);
    add(a, b);
    claim_unreduced(&quantity, 0);
}

static void prove_sixteenth(void) {
    proof_place = "sixteenth";
    const Digits a = any_value(range(0, power(256) - 1));
    Form quantity;
    value_of(&quantity, a.limb[0]);
    sixteenth(a.limb[0]);
    claim_unreduced(&quantity, 4);
}

static void prove_difference(void) {
    proof_place = "subtract";
    const Digits a = any_value(range(0, prime() - 1)), b = any_value(range(0, prime() - 1));
    const Sum r = subtract(a, b);
    Form result, part;
    value_of(&result, r.limb[0]);
    const Range known = range_of(&result);
    if (known.low < 0 || known.high >= prime()) fail("a value is below p");
    value_of(&part, a.limb[0]);
    add_multiple(&result, &result, &part, -1);
    value_of(&part, b.limb[0]);
    add_multiple(&result, &result, &part, 1);
    const Range difference = range_of(&result);
    if (difference.low != difference.high || (difference.low != 0 && difference.low != prime()))
        fail("p is added once, or not at all");
}

static void prove_all(void) {
    for_all_decisions(prove_reduction);
    for_all_decisions(prove_product);
    for_all_decisions(prove_square);
    for_all_decisions(prove_sum);
    for_all_decisions(prove_sixteenth);
    for_all_decisions(prove_difference);
}

static long run(size_t chosen, const char **failed, rg_claim claims[256], size_t *written) {
    (void)claims;
    *written = 0;
    return run_proof(chosen, failed, prove_all);
}

extern const rg_proof rg_word_proof;
const rg_proof rg_word_proof = {"field_words.h",    LANES, GROUPS,  HAS_SIGNED_SHIFTS,
                                SHIFTS_ARE_QUICKER, run,   mutants, MUTANT_COUNT};
