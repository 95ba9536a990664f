// Lanes that stand for all inputs at once: a vector is one form (linear_forms.h), which says what any of its lanes
// holds. The including file defines
//
// - SYMBOLIC_LANES: as many lanes as the kernel has whose bounds are proven.
// - SYMBOLIC_DOUBLES: 1 when its multiplier is that of doubles.h.
// - SYMBOLIC_SHIFTS_ARE_QUICKER, SYMBOLIC_SIGNED_SHIFTS: what the kernel's lanes say, without doubles and in any case.
// - FORKS: 1 when a mask that the bounds do not decide is decided by a script (`decide_mask`), 0 when `choose` joins.
#pragma once

#include "linear_forms.h"

#define PRODUCT NOINLINE

enum { LANES = SYMBOLIC_LANES, HAS_SIGNED_SHIFTS = SYMBOLIC_SIGNED_SHIFTS };

typedef Form lanes;

static const Range any_word = {0, ((Exact)1 << 64) - 1};

INLINE lanes broadcast(uint64_t value) { return constant_form((Exact)value); }
INLINE lanes plus(lanes a, lanes b) {
    add_multiple(&a, &a, &b, 1);
    return a;
}
INLINE lanes minus(lanes a, lanes b) {
    add_multiple(&a, &a, &b, -1);
    return a;
}
INLINE lanes shift_left(lanes a, int bits) {
    shift_form(&a, &a, bits);
    return a;
}

/// The same word as a form whose value is from `low` to `low` + 2^64 - 1.
INLINE lanes unwrapped(lanes a, Exact low) {
    const Range bounds = range_of(&a);
    const Exact wraps = (bounds.low - low) >> 64;
    lanes offset = constant_form(wraps << 64);
    if ((bounds.high - low) >> 64 == wraps) {
        if (wraps != 0) add_multiple(&a, &a, &offset, -1);
        return a;
    }
    // The bounds do not say how often the word has wrapped around.
    offset = constant_form(low);
    add_multiple(&a, &a, &offset, -1);
    low_part(&a, &a, 64);
    return plus(a, offset);
}
INLINE lanes as_unsigned(lanes a) { return unwrapped(a, 0); }
INLINE lanes as_signed(lanes a) { return unwrapped(a, -power(63)); }

INLINE lanes shift_right(lanes a, int bits) {
    a = as_unsigned(a);
    if (bits > 0) upper_part(&a, &a, bits);
    return a;
}
INLINE lanes carry_of(lanes limb) {
    limb = as_signed(limb);
    upper_part(&limb, &limb, LIMB_BITS);
    return limb;
}

INLINE lanes bit_and(lanes a, lanes b) {
    if (is_constant(&a)) {
        const lanes other = a;
        a = b;
        b = other;
    }
    if (is_constant(&b)) {
        b = as_unsigned(b);
        const Exact mask = integer_of(&b);
        if ((mask & (mask + 1)) == 0) {
            low_part(&a, &a, 64 - __builtin_clzll((uint64_t)mask));
            return a;
        }
        return unknown(range(0, mask));
    }
    return unknown(any_word);
}
INLINE lanes bit_or(lanes a, lanes b) {
    a = as_unsigned(a);
    b = as_unsigned(b);
    const Range ra = range_of(&a), rb = range_of(&b);
    // Without common bits.
    if (ra.high < power(multiple_of(&b)) || rb.high < power(multiple_of(&a))) return plus(a, b);
    Exact ones = 1;
    while (ones <= greatest(ra.high, rb.high)) ones <<= 1;
    return unknown(range(greatest(ra.low, rb.low), least(ra.high + rb.high, ones - 1)));
}
INLINE lanes insert_low(lanes a, lanes b) {
    low_part(&b, &b, LIMB_BITS);
    const lanes both = bit_or(a, b);
    return both;
}

// MARK: Masks

enum { EVERY_LANE = (1 << SYMBOLIC_LANES) - 1 };

#if FORKS
/// The decisions of this run: those in the script, then 0. `decided` counts them.
static unsigned script;
static int decided;

static int decide_mask(void) { return (int)(script >> decided++ & 1); }

/// The sign of a is what the script says. A word that is -1 or 0 is then known.
INLINE lane_mask negative_lanes(lanes a) {
    a = as_signed(a);
    const Range bounds = range_of(&a);
    if (bounds.high < 0) return EVERY_LANE;
    if (bounds.low >= 0) return 0;
    if (bounds.low != -1 || bounds.high != 0 || equation_count == EQUATIONS_MAX) {
        fail("a sign that nobody can decide");
        return 0;
    }
    const int is_negative = decide_mask();
    const lanes sign = constant_form(is_negative);
    add_multiple(&equations[equation_count++].form, &a, &sign, 1);
    return is_negative ? EVERY_LANE : 0;
}
INLINE lane_mask nonzero_lanes(lanes a) {
    a = as_unsigned(a);
    const Range bounds = range_of(&a);
    if (bounds.low > 0) return EVERY_LANE;
    if (bounds.high <= 0) return 0;
    const int is_nonzero = decide_mask();
    if (!is_nonzero || bounds.high == 1) {
        if (equation_count == EQUATIONS_MAX) fail("too many decisions");
        const lanes value = constant_form(is_nonzero);
        add_multiple(&equations[equation_count++].form, &a, &value, -1);
    }
    return is_nonzero ? EVERY_LANE : 0;
}
INLINE lanes choose(lane_mask mask, lanes a, lanes b) { return mask & 1 ? a : b; }
#else
/// What masks are that nobody knows.
static lane_mask unknown_mask;

INLINE lane_mask negative_lanes(lanes a) {
    a = as_signed(a);
    const Range bounds = range_of(&a);
    return bounds.high < 0 ? EVERY_LANE : bounds.low >= 0 ? 0 : unknown_mask;
}
INLINE lane_mask nonzero_lanes(lanes a) {
    a = as_unsigned(a);
    const Range bounds = range_of(&a);
    return bounds.low > 0 ? EVERY_LANE : bounds.high <= 0 ? 0 : unknown_mask;
}
INLINE lanes choose(lane_mask mask, lanes a, lanes b) {
    (void)mask;
    return is_same(&a, &b) ? a : unknown(join(range_of(&a), range_of(&b)));
}
#endif

// MARK: Memory. Nothing is known of what stands there.

INLINE lanes load(const uint64_t *words) {
    (void)words;
    return unknown(any_word);
}
INLINE void store(uint64_t *words, lanes a) {
    (void)a;
    memset(words, 0, LANES * sizeof *words);
}
/// Nothing is known of it. (It is not zero, so that an inversion goes on; `inversion_fails` says the contrary.)
static int inversion_fails;
INLINE uint64_t first_lane(lanes a) {
    (void)a;
    return !inversion_fails;
}
/// Another lane keeps the same bounds.
INLINE lanes neighbour(lanes a, int distance) {
    (void)distance;
    return is_constant(&a) ? a : unknown(range_of(&a));
}
INLINE void load_columns(lanes column[8], const uint64_t address[LANES]) {
    (void)address;
    UNROLL(word, 0, 8) column[word] = unknown(any_word);
}
INLINE void store_columns(uint64_t *const row_of_lane[LANES], const lanes column[8]) {
    (void)row_of_lane;
    (void)column;
}

// MARK: The multiplier

/// Products of atoms. They are few: only proofs of the field have them.
static struct { Atom first, second, product; } products[1024];
static size_t product_count;

/// The product of two forms of which one is a constant, or both are single atoms.
static Form product_of_forms(const Form *a, const Form *b) {
    Form r;
    if (is_constant(a) || is_constant(b)) {
        const Form *constant = is_constant(a) ? a : b, *other = is_constant(a) ? b : a;
        const Form zero = constant_form(0);
        add_multiple(&r, &zero, other, integer_of(constant));
        return r;
    }
    const Range ra = range_of(a), rb = range_of(b);
    if (a->count != 1 || b->count != 1 || a->constant != 0 || b->constant != 0 || a->term[0].coefficient != scaled(1) ||
        b->term[0].coefficient != scaled(1) || ra.low < 0 || rb.low < 0) {
        fail("a product of more than atoms");
        return unknown(range(0, power(2 * LIMB_BITS)));
    }
    Atom first = a->term[0].atom, second = b->term[0].atom;
    if (first > second) {
        const Atom other = first;
        first = second;
        second = other;
    }
    for (size_t k = 0; k < product_count; k++)
        if (products[k].first == first && products[k].second == second) return atom_form(products[k].product);
    if (product_count == sizeof products / sizeof products[0]) abort();
    products[product_count].first = first;
    products[product_count].second = second;
    products[product_count].product = new_atom(range(ra.low * rb.low, ra.high * rb.high));
    return atom_form(products[product_count++].product);
}

#if !SYMBOLIC_DOUBLES
typedef lanes factor;

enum { LOW_BIAS = 0, HIGH_BIAS = 0, SHIFTS_ARE_QUICKER = SYMBOLIC_SHIFTS_ARE_QUICKER };

INLINE factor factor_of(lanes limb) {
    low_part(&limb, &limb, LIMB_BITS);
    return limb;
}
INLINE lanes add_low(lanes sum, factor a, factor b) {
    lanes part = product_of_forms(&a, &b);
    low_part(&part, &part, LIMB_BITS);
    return plus(sum, part);
}
INLINE lanes add_high(lanes sum, factor a, factor b) {
    lanes part = product_of_forms(&a, &b);
    upper_part(&part, &part, LIMB_BITS);
    return plus(sum, part);
}
#else
/// A double: its value, an integer, which is a form.
typedef lanes reals;

/// The bits of 2^52 and of 2^104.
static const uint64_t exponent_52 = 0x4330000000000000, exponent_104 = 0x4670000000000000;

/// A double has 53 bits: the value is one if it is a multiple of 2^e and at most 2^(53 + e) in magnitude.
INLINE reals exact(reals a, const char *what) {
    a.range = range_of(&a);
    const Exact most = power(53 + multiple_of(&a));
    if (a.range.low < -most || a.range.high > most) fail(what);
    return a;
}
INLINE int is_within(const reals *a, Exact low, Exact end) {
    const Range bounds = range_of(a);
    return bounds.low >= low && bounds.high < end;
}
INLINE reals real(double value) {
    reals r = constant_form((Exact)(int64_t)(value < 0x1p60 ? value : 0));
    // Only powers of 2 and their sum are used, which are exact.
    if (value == 0x1p104) r = constant_form(power(104));
    if (value == 0x1p104 + 0x1p52) r = constant_form(power(104) + power(52));
    return r;
}
INLINE lanes insert_exponent(lanes limb) {
    low_part(&limb, &limb, LIMB_BITS);
    return plus(limb, broadcast(exponent_52));
}
INLINE reals reals_of(lanes bits) {
    const lanes offset = constant_form((Exact)exponent_52 - power(52));
    reals r = minus(as_unsigned(bits), offset);
    if (!is_within(&r, power(52), power(53))) fail("a double that is not from 2^52 to 2^53");
    return r;
}
INLINE reals real_minus(reals a, reals b) { return exact(minus(a, b), "a difference of doubles that is not exact"); }
INLINE lanes bits_of(reals a) {
    if (is_within(&a, power(52), power(53))) return plus(a, constant_form((Exact)exponent_52 - power(52)));
    if (!is_within(&a, power(104), power(105)) || multiple_of(&a) < 52)
        fail("the bits of a double of unknown exponent");
    reals mantissa = minus(a, constant_form(power(104)));
    shift_form(&mantissa, &mantissa, -52);
    return plus(mantissa, broadcast(exponent_104));
}
INLINE reals fused_toward_zero(reals a, reals b, reals c) {
    // The last place of a result from 2^104 to 2^105 is 2^52. c is a multiple of it, so that only a b is rounded.
    reals upper = product_of_forms(&a, &b);
    if (multiple_of(&c) < 52) fail("a fused addition that rounds its addend");
    upper_part(&upper, &upper, 52);
    shift_form(&upper, &upper, 52);
    const reals r = plus(upper, c);
    if (!is_within(&r, power(104), power(105))) fail("a fused result that is not from 2^104 to 2^105");
    return r;
}
INLINE reals fused_exact(reals a, reals b, reals c) {
    return exact(plus(product_of_forms(&a, &b), c), "a fused result that is not exact");
}

#include "../../Sources/CKernels/p256/lanes/doubles.h"
#endif

typedef int arithmetic;
INLINE arithmetic begin_arithmetic(void) { return 0; }
INLINE void end_arithmetic(arithmetic before) { (void)before; }
