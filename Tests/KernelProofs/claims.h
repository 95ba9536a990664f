// The bounds that the kernel's sources state, as claims about all inputs: each function takes the place of the check of
// the same bound in bounds.h, which looks at numbers. A claim that does not follow from the forms fails.
#pragma once

#include "../../Sources/CKernels/p256/bounds.h"
#include "../../Sources/CKernels/p256/constants.h"

static Exact number_of(const uint64_t limb[LIMBS]) {
    Exact r = 0;
    for (int i = LIMBS - 1; i >= 0; i--) r = (r << LIMB_BITS) + (Exact)limb[i];
    return r;
}
static Exact p_number(void) { return number_of(P_LIMBS); }

/// The value of limbs that may be negative.
static void signed_value(Form *value, const lanes limb[LIMBS]) {
    lanes number[LIMBS];
    EACH_LIMB(i) number[i] = as_signed(limb[i]);
    value_of(value, number);
}

/// The bounds of that value.
static Range range_of_limbs(const lanes limb[LIMBS]) {
    Form value;
    signed_value(&value, limb);
    return range_of(&value);
}

/// The value of the low 52 bits of the limbs.
static Range range_of_digits(const lanes limb[LIMBS]) {
    lanes low[LIMBS];
    EACH_LIMB(i) low_part(&low[i], &limb[i], LIMB_BITS);
    return range_of_limbs(low);
}

/// The greatest values that a claim was made about, and how often.
typedef struct {
    const char *bound;
    double low, high;
    /// In millionths of p.
    int64_t claimed_low, claimed_high;
    long count;
} ClaimRecord;

enum { CLAIMS_MAX = 256 };
static ClaimRecord claim_records[CLAIMS_MAX];
static int claim_count;

static int64_t millionths(double multiple) { return (int64_t)(multiple * 1e6 + (multiple < 0 ? -0.5 : 0.5)); }
static double in_multiples_of_p(Exact value) {
    return (double)(int64_t)(value >> 200) / (double)(int64_t)(p_number() >> 200);
}

static void record_claim(const char *bound, Range value, double low, double high) {
    const double least_seen = in_multiples_of_p(value.low), most_seen = in_multiples_of_p(value.high);
    for (int k = 0; k < claim_count; k++) {
        ClaimRecord *r = &claim_records[k];
        if (r->bound != bound && strcmp(r->bound, bound) != 0) continue;
        if (least_seen < r->low) r->low = least_seen;
        if (most_seen > r->high) r->high = most_seen;
        r->count++;
        return;
    }
    if (claim_count == CLAIMS_MAX) abort();
    claim_records[claim_count++] = (ClaimRecord){bound, least_seen, most_seen, millionths(low), millionths(high), 1};
}

static void claim_range(Range value, double low, double high, const char *bound) {
    record_claim(bound, value, low, high);
    const Exact p = p_number();
    if (value.low * 1000000 < p * millionths(low) || value.high * 1000000 > p * millionths(high)) fail(bound);
}

static void claim_value(const lanes limb[LIMBS], double low, double high, const char *bound) {
    claim_range(range_of_limbs(limb), low, high, bound);
}
static void claim_low_bits(const lanes limb[LIMBS], double low, double high, const char *bound) {
    claim_range(range_of_digits(limb), low, high, bound);
}
static void claim_below_power(lanes number, int bits, const char *bound) {
    number = as_signed(number);
    const Range known = range_of(&number);
    if (known.low < 0 || known.high >= power(bits)) fail(bound);
}
static void claim_limbs(const lanes limb[LIMBS], int bits, const char *bound) {
    EACH_LIMB(i) claim_below_power(limb[i], bits, bound);
}
static void claim_signed_limbs(const lanes limb[LIMBS], int bits, const char *bound) {
    EACH_LIMB(i) {
        const lanes number = as_signed(limb[i]);
        const Range known = range_of(&number);
        if (known.low <= -power(bits) || known.high >= power(bits)) fail(bound);
    }
}
static void claim_words(const lanes limb[LIMBS]) {
    claim_limbs(limb, LIMB_BITS, "words: of clean limbs");
    claim_below_power(limb[4], 48, "words: of a value below 2^256");
}
/// (Whether a scalar is odd is no bound. The tests of scalars see to it.)
static void claim(int holds, const char *bound) {
    if (!holds && strcmp(bound, "scalar: odd") != 0) fail(bound);
}

#define check_value claim_value
#define check_low_bits claim_low_bits
#define check_below_power claim_below_power
#define check_limbs claim_limbs
#define check_signed_limbs claim_signed_limbs
#define check_words claim_words
#define kernel_check claim
// A product and a weak reduction keep what is proven of them apart.
#define check_reduction(product, a, b, c, d) ((void)0)
#define check_weak_reduction(reduced, h) ((void)0)
