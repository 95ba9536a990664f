// Numbers that stand for all inputs at once: linear forms over atoms.
//
// An atom is an unknown integer between two bounds. A form is a constant plus atoms times coefficients. It says exactly
// what a word of the kernel is, as a function of the atoms, so that what cancels in the kernel cancels here. Forms are
// exact: coefficients are multiples of 2^-FRACTION_BITS, and every operation that would round fails instead.
//
// Three kinds of atoms know more than their bounds:
//
// - The low bits of a form. The same form gets the same atom, so that a carry and what it leaves behind cancel.
// - The product of two atoms.
// - The limbs of a group and their value, the sum of limb i times 2^(GROUP_BITS i). A form with all of them in these
//   proportions is bounded by what is known of the value, which is much less than what the limbs say one by one.
#pragma once

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef FORM_FRACTION
/// The field of words has longer chains of carries, and groups of four words.
#define FORM_FRACTION 512
#define GROUP_SIZE 5
#define GROUP_BITS 52
#endif

enum {
    FRACTION_BITS = FORM_FRACTION,
    EXACT_BITS = FRACTION_BITS + 576,
    /// Terms of a form. A form that would have more becomes an atom.
    TERMS = FORM_TERMS,
};

/// An integer, or a number times 2^FRACTION_BITS where a name says scaled.
typedef _BitInt(EXACT_BITS) Exact;

/// 2^bits.
static inline Exact power(int bits) { return (Exact)1 << bits; }
static inline Exact scaled(Exact integer) { return integer << FRACTION_BITS; }
static inline Exact least(Exact a, Exact b) { return a < b ? a : b; }
static inline Exact greatest(Exact a, Exact b) { return a > b ? a : b; }
/// a times 2^bits; bits may be negative, and then the result is rounded down.
static inline Exact shifted_by(Exact a, int bits) {
    return bits < 0 ? a >> -bits : (Exact)((unsigned _BitInt(EXACT_BITS))a << bits);
}
/// The number of a's low bits that are zero; EXACT_BITS for zero.
static int trailing_zeros(Exact a) {
    if (a == 0) return EXACT_BITS;
    int count = 0;
    while ((uint64_t)a == 0) a >>= 64, count += 64;
    return count + __builtin_ctzll((uint64_t)a);
}

typedef struct {
    /// Bounds, which belong to the range.
    Exact low, high;
} Range;

static inline Range range(Exact low, Exact high) { return (Range){low, high}; }
static inline Range meet(Range a, Range b) { return range(greatest(a.low, b.low), least(a.high, b.high)); }
static inline Range join(Range a, Range b) { return range(least(a.low, b.low), greatest(a.high, b.high)); }
static inline Range sum_of_ranges(Range a, Range b) { return range(a.low + b.low, a.high + b.high); }
static Range times(Range a, Exact factor) {
    // Most factors are powers of 2.
    const int zeros = trailing_zeros(factor);
    if (factor == 0) return range(0, 0);
    const Exact odd = factor >> zeros;
    if (odd == 1) return range(shifted_by(a.low, zeros), shifted_by(a.high, zeros));
    if (odd == -1) return range(-shifted_by(a.high, zeros), -shifted_by(a.low, zeros));
    return factor < 0 ? range(a.high * factor, a.low * factor) : range(a.low * factor, a.high * factor);
}

typedef uint32_t Atom;

typedef struct {
    Atom atom;
    /// Scaled.
    Exact coefficient;
} Term;

/// A form; of all zero bytes it is the constant 0. It stands for a word of 64 bits when it is congruent to it modulo
/// 2^64, for all values of the atoms.
typedef struct {
    /// Scaled.
    Exact constant;
    /// Bounds of the form's value that are known beside its terms.
    Range range;
    /// The value is a multiple of 2^multiple.
    int multiple;
    int count;
    /// By ascending atoms.
    Term term[TERMS];
} Form;

// MARK: Failures

/// What is being proven, for messages.
static const char *proof_place = "";
static long proof_failures;
static const char *first_failure;
/// Where a run with a mutant goes on after its first failure.
static jmp_buf *after_failure;

static void fail(const char *what) {
    if (proof_failures++ == 0) first_failure = what;
    if (after_failure) longjmp(*after_failure, 1);
    if (proof_failures <= 20) fprintf(stderr, "not proven: %s: %s\n", proof_place, what);
}

// MARK: Atoms

enum { IS_PLAIN, IS_LIMB, IS_VALUE };

typedef struct {
    Range range;
    /// IS_LIMB: limb `place` of a group, whose value is the atom GROUP_SIZE - place further on.
    int kind, place;
    /// For the low bits of a form: the number of bits, and the place of the form in the memory of forms.
    int bits;
    uint32_t definition;
} AtomFacts;

static AtomFacts *atoms;
static Atom atom_count, atom_room;

static Atom new_atom(Range range) {
    if (atom_count == atom_room) {
        atom_room = atom_room ? 2 * atom_room : 1024;
        atoms = realloc(atoms, atom_room * sizeof *atoms);
        if (!atoms) abort();
    }
    if (range.low > range.high) fail("an atom without a value");
    atoms[atom_count] = (AtomFacts){.range = range};
    return atom_count++;
}

// MARK: Forms

static Form constant_form(Exact integer) {
    Form r;
    memset(&r, 0, sizeof r);
    r.constant = scaled(integer);
    r.range = range(integer, integer);
    return r;
}

static Form atom_form(Atom atom) {
    Form r;
    memset(&r, 0, sizeof r);
    r.range = atoms[atom].range;
    r.count = 1;
    r.term[0] = (Term){atom, scaled(1)};
    return r;
}

/// An unknown integer in the range.
static Form unknown(Range range) { return atom_form(new_atom(range)); }

static int is_constant(const Form *a) { return a->count == 0; }
/// The constant as an integer.
static Exact integer_of(const Form *a) { return a->constant >> FRACTION_BITS; }
static int multiple_of(const Form *a) {
    if (!is_constant(a)) return a->multiple;
    const int zeros = trailing_zeros(a->constant);
    return zeros < FRACTION_BITS ? 0 : zeros - FRACTION_BITS;
}

static int is_same(const Form *a, const Form *b) {
    if (a->count != b->count || a->constant != b->constant) return 0;
    for (int k = 0; k < a->count; k++)
        if (a->term[k].atom != b->term[k].atom || a->term[k].coefficient != b->term[k].coefficient) return 0;
    return 1;
}

static Range range_of(const Form *a);
static int is_integral(const Form *a);
static Range range_by_terms(const Form *a);

/// The bounds of the value, rounded to integers, where a multiple of the form could not be rounded as well.
static Range rounded_range(const Form *a) { return is_integral(a) ? a->range : meet(a->range, range_by_terms(a)); }

/// a + factor b.
static void add_multiple(Form *r, const Form *a, const Form *b, Exact factor) {
    static Form sum;
    int i = 0, j = 0, is_too_long = 0;
    sum.count = 0;
    sum.constant = a->constant + b->constant * factor;
    sum.range = sum_of_ranges(rounded_range(a), times(rounded_range(b), factor));
    const int am = multiple_of(a), bm = multiple_of(b) + trailing_zeros(factor);
    sum.multiple = am < bm ? am : bm;
    while (i < a->count || j < b->count) {
        Term t;
        if (j == b->count || (i < a->count && a->term[i].atom < b->term[j].atom)) {
            t = a->term[i++];
        } else if (i == a->count || b->term[j].atom < a->term[i].atom) {
            t = b->term[j++];
            t.coefficient *= factor;
        } else {
            t = a->term[i++];
            t.coefficient += b->term[j++].coefficient * factor;
        }
        if (t.coefficient == 0) continue;
        if (sum.count == TERMS) {
            is_too_long = 1;
            break;
        }
        sum.term[sum.count++] = t;
    }
    if (is_too_long) {
        const Range ra = range_of(a), rb = range_of(b);
        const int multiple = sum.multiple;
        *r = unknown(sum_of_ranges(ra, times(rb, factor)));
        r->multiple = multiple;
        return;
    }
    if (sum.count == 0) {
        const Exact integer = sum.constant >> FRACTION_BITS;
        sum.range = range(integer, integer);
    }
    // A long form is not copied whole.
    memcpy(r, &sum, offsetof(Form, term) + (size_t)sum.count * sizeof(Term));
}

/// a times 2^bits; exact, or it fails.
static void shift_form(Form *r, const Form *a, int bits) {
    if (r != a) memcpy(r, a, offsetof(Form, term) + (size_t)a->count * sizeof(Term));
    if (bits < 0) {
        int zeros = trailing_zeros(r->constant);
        for (int k = 0; k < r->count; k++) {
            const int own = trailing_zeros(r->term[k].coefficient);
            if (own < zeros) zeros = own;
        }
        if (zeros < -bits) {
            // The form is too fine: only the bounds are kept.
            const Range known = range_of(a);
            *r = unknown(range(shifted_by(known.low, bits), shifted_by(known.high, bits)));
            return;
        }
    }
    r->constant = shifted_by(r->constant, bits);
    for (int k = 0; k < r->count; k++) r->term[k].coefficient = shifted_by(r->term[k].coefficient, bits);
    r->range = range(shifted_by(r->range.low, bits), shifted_by(r->range.high, bits));
    const int multiple = multiple_of(a) + bits;
    r->multiple = multiple > 0 ? multiple : 0;
}

// MARK: Bounds

/// What a decision of the kernel says: a form that is 0.
typedef struct {
    Form form;
} Equation;

enum { EQUATIONS_MAX = 8 };
static Equation equations[EQUATIONS_MAX];
static int equation_count;

/// The bounds, scaled, of the terms of a group in a form from term k on, and where the next term stands.
static Range group_range(const Form *a, int *k) {
    const AtomFacts *facts = &atoms[a->term[*k].atom];
    const Atom first = a->term[*k].atom - (Atom)facts->place;
    Exact c[GROUP_SIZE + 1] = {0};
    for (; *k < a->count && a->term[*k].atom <= first + GROUP_SIZE; ++*k)
        c[a->term[*k].atom - first] = a->term[*k].coefficient;
    Range plain = range(0, 0);
    for (int i = 0; i <= GROUP_SIZE; i++)
        if (c[i] != 0) plain = sum_of_ranges(plain, times(atoms[first + (Atom)i].range, c[i]));
    // With the top limb replaced by the value and the other limbs.
    const int top = GROUP_BITS * (GROUP_SIZE - 1);
    if (c[GROUP_SIZE - 1] == 0 || trailing_zeros(c[GROUP_SIZE - 1]) < top) return plain;
    const Exact share = c[GROUP_SIZE - 1] >> top;
    Range by_value = times(atoms[first + GROUP_SIZE].range, c[GROUP_SIZE] + share);
    for (int i = 0; i < GROUP_SIZE - 1; i++)
        by_value = sum_of_ranges(by_value, times(atoms[first + (Atom)i].range, c[i] - (share << (GROUP_BITS * i))));
    return meet(plain, by_value);
}

static Range range_by_terms(const Form *a) {
    Range r = range(a->constant, a->constant);
    for (int k = 0; k < a->count;) {
        const AtomFacts *facts = &atoms[a->term[k].atom];
        if (facts->kind != IS_PLAIN) {
            r = sum_of_ranges(r, group_range(a, &k));
        } else {
            r = sum_of_ranges(r, times(facts->range, a->term[k].coefficient));
            k++;
        }
    }
    // The value is an integer.
    return range((r.low + power(FRACTION_BITS) - 1) >> FRACTION_BITS, r.high >> FRACTION_BITS);
}

/// Bounds with the help of the equations that `used` has no bit for, each used once at most.
static Range range_by_equations(const Form *a, unsigned used) {
    Range r = range_by_terms(a);
    for (int e = 0; e < equation_count; e++) {
        if (used >> e & 1) continue;
        const Form *equation = &equations[e].form;
        for (int k = 0; k < a->count; k++)
            for (int j = 0; j < equation->count; j++) {
                if (equation->term[j].atom != a->term[k].atom) continue;
                // a - (coefficient / coefficient) equation, where the quotient is a power of 2.
                const Exact own = a->term[k].coefficient, other = equation->term[j].coefficient;
                const int shift = trailing_zeros(own) - trailing_zeros(other);
                const Exact sign = (own < 0) == (other < 0) ? -1 : 1;
                if (shifted_by(other, shift) * -sign != own) continue;
                Form part;
                shift_form(&part, equation, shift);
                if (part.count != equation->count) continue;
                add_multiple(&part, a, &part, sign);
                r = meet(r, range_by_equations(&part, used | 1u << e));
                if (r.low == r.high) return r;
            }
    }
    return r;
}

/// The bounds of the form's value.
static Range range_of(const Form *a) {
    return meet(a->range, equation_count ? range_by_equations(a, 0) : range_by_terms(a));
}

/// Adds an equation, and what follows from it for the bounds of its atoms.
static void know(const Form *zero) {
    if (equation_count == EQUATIONS_MAX) abort();
    equations[equation_count++].form = *zero;
    for (int k = 0; k < zero->count; k++) {
        const Atom atom = zero->term[k].atom;
        const Form alone = atom_form(atom);
        atoms[atom].range = meet(atoms[atom].range, range_of(&alone));
    }
}

// MARK: Low bits

/// Forms whose low bits have an atom. An entry that another one takes the place of is forgotten, and the same form gets
/// another atom then: less is known, and nothing wrong.
typedef struct {
    int bits;
    Atom atom;
    Form form;
} Known;

enum { KNOWN_MAX = FORM_MEMORY };
static Known *known;

static uint64_t mixed(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}
static uint64_t mixed_exact(uint64_t hash, Exact a) {
    const int zeros = trailing_zeros(a);
    return mixed(mixed(hash, (uint64_t)zeros), zeros < EXACT_BITS ? (uint64_t)(a >> zeros) : 0);
}

/// Where the form stands, or where it may be written: there stands nothing, or the oldest of some entries.
static uint32_t place_of(const Form *a, int bits) {
    uint64_t hash = mixed_exact((uint64_t)bits, a->constant);
    for (int k = 0; k < a->count; k++) hash = mixed_exact(mixed(hash, a->term[k].atom), a->term[k].coefficient);
    const uint32_t first = (uint32_t)(hash >> 32) % KNOWN_MAX;
    uint32_t oldest = first;
    for (uint32_t k = 0; k < 8; k++) {
        const uint32_t place = (first + k) % KNOWN_MAX;
        const Known *entry = &known[place];
        if (entry->bits == 0 || (entry->bits == bits && is_same(&entry->form, a))) return place;
        if (entry->atom < known[oldest].atom) oldest = place;
    }
    return oldest;
}

static int is_known(const Form *a, int bits, Atom *atom) {
    const Known *entry = &known[place_of(a, bits)];
    if (entry->bits != bits || !is_same(&entry->form, a)) return 0;
    *atom = entry->atom;
    return 1;
}

/// All coefficients are integers.
static int is_integral(const Form *a) {
    int zeros = trailing_zeros(a->constant);
    for (int k = 0; k < a->count; k++) {
        const int own = trailing_zeros(a->term[k].coefficient);
        if (own < zeros) zeros = own;
    }
    return zeros >= FRACTION_BITS;
}

/// Leaves out multiples of 2^bits. Returns whether there were any.
static int leave_out_multiples(Form *a, int bits) {
    const int before = a->count, is_whole = trailing_zeros(a->constant) >= FRACTION_BITS;
    const Exact constant = is_whole ? a->constant & (scaled(power(bits)) - 1) : a->constant;
    int kept = 0;
    for (int k = 0; k < a->count; k++)
        if (trailing_zeros(a->term[k].coefficient) < FRACTION_BITS + bits) a->term[kept++] = a->term[k];
    if (kept == before && constant == a->constant) return 0;
    a->count = kept;
    a->constant = constant;
    a->range = range(-power(600), power(600));
    return 1;
}

/// Tries to find an integer that the form is congruent to modulo 2^bits: atoms that are the low bits of integral forms
/// are replaced by those, again and again.
static int is_congruent_to_constant(const Form *a, int bits, Exact *integer) {
    Form rest = *a;
    for (int steps = 0; steps < 16; steps++) {
        leave_out_multiples(&rest, bits);
        if (rest.count == 0) {
            if (!is_integral(&rest)) return 0;
            *integer = (rest.constant >> FRACTION_BITS) & (power(bits) - 1);
            return 1;
        }
        // The youngest atom first: it was defined by the others.
        int is_replaced = 0;
        for (int k = rest.count - 1; k >= 0 && !is_replaced; k--) {
            const AtomFacts *facts = &atoms[rest.term[k].atom];
            if (facts->bits < bits || facts->bits == 0) continue;
            const Known *entry = &known[facts->definition];
            if (entry->atom != rest.term[k].atom || !is_integral(&entry->form)) continue;
            const Exact factor = rest.term[k].coefficient >> FRACTION_BITS;
            Form own = atom_form(rest.term[k].atom);
            add_multiple(&rest, &rest, &own, -factor);
            add_multiple(&rest, &rest, &entry->form, factor & (power(bits) - 1));
            is_replaced = 1;
        }
        if (!is_replaced) return 0;
    }
    return 0;
}

/// The value modulo 2^bits.
static void low_part(Form *r, const Form *a, int bits) {
    const Range bounds = range_of(a);
    if (bounds.low >> bits == bounds.high >> bits) {
        const Form offset = constant_form(bounds.low >> bits << bits);
        add_multiple(r, a, &offset, -1);
        return;
    }
    const int zeros = multiple_of(a);
    if (zeros >= bits) {
        *r = constant_form(0);
        return;
    }
    if (zeros > 0) {
        Form rest;
        shift_form(&rest, a, -zeros);
        low_part(&rest, &rest, bits - zeros);
        shift_form(r, &rest, zeros);
        return;
    }
    Form whole = *a;
    if (leave_out_multiples(&whole, bits)) {
        low_part(r, &whole, bits);
        return;
    }
    // The low bits of low bits are those of the form itself.
    if (whole.count == 1 && whole.constant == 0 && whole.term[0].coefficient == scaled(1)) {
        const AtomFacts *facts = &atoms[whole.term[0].atom];
        if (facts->bits >= bits && known[facts->definition].atom == whole.term[0].atom) {
            whole = known[facts->definition].form;
            low_part(r, &whole, bits);
            return;
        }
    }
    if (is_constant(&whole)) {
        *r = constant_form(integer_of(&whole));
        return;
    }
    Atom atom;
    if (!is_known(&whole, bits, &atom)) {
        // With the low bits of what remains without one atom, which is what a reduction adds.
        for (int k = whole.count - 1; k >= 0; k--) {
            if (atoms[whole.term[k].atom].bits == 0 || trailing_zeros(whole.term[k].coefficient) < FRACTION_BITS)
                continue;
            Form rest, own = atom_form(whole.term[k].atom);
            const Exact factor = whole.term[k].coefficient >> FRACTION_BITS;
            add_multiple(&rest, &whole, &own, -factor);
            leave_out_multiples(&rest, bits);
            Atom other;
            Exact integer;
            if (!is_known(&rest, bits, &other)) {
                // The rest may be low bits already.
                if (rest.count != 1 || rest.constant != 0 || rest.term[0].coefficient != scaled(1)) continue;
                other = rest.term[0].atom;
            }
            Form sum = atom_form(other);
            add_multiple(&sum, &sum, &own, factor);
            if (!is_congruent_to_constant(&sum, bits, &integer)) continue;
            *r = constant_form(integer);
            return;
        }
        atom = new_atom(range(0, power(bits) - 1));
        const uint32_t place = place_of(&whole, bits);
        known[place].bits = bits;
        known[place].atom = atom;
        known[place].form = whole;
        atoms[atom].bits = bits;
        atoms[atom].definition = place;
    }
    *r = atom_form(atom);
}

/// The value over 2^bits, rounded down.
static void upper_part(Form *r, const Form *a, int bits) {
    const Range bounds = range_of(a);
    const Range result = range(bounds.low >> bits, bounds.high >> bits);
    if (result.low == result.high) {
        *r = constant_form(result.low);
        return;
    }
    Form low;
    low_part(&low, a, bits);
    add_multiple(&low, a, &low, -1);
    shift_form(r, &low, -bits);
    r->range = meet(r->range, result);
}

// MARK: Groups

/// Unknown limbs and their value: the sum of limb i times 2^(GROUP_BITS i).
static void new_group(Form limb[GROUP_SIZE], const Range limb_range[GROUP_SIZE], Range value) {
    Atom first = 0;
    for (int i = 0; i < GROUP_SIZE; i++) {
        const Atom atom = new_atom(limb_range[i]);
        if (i == 0) first = atom;
        atoms[atom].kind = IS_LIMB;
        atoms[atom].place = i;
    }
    const Atom atom = new_atom(value);
    atoms[atom].kind = IS_VALUE;
    atoms[atom].place = GROUP_SIZE;
    for (int i = 0; i < GROUP_SIZE; i++) limb[i] = atom_form(first + (Atom)i);
}

/// The sum of limb i times 2^(GROUP_BITS i).
static void value_of(Form *r, const Form limb[GROUP_SIZE]) {
    *r = constant_form(0);
    for (int i = 0; i < GROUP_SIZE; i++) {
        Form part;
        shift_form(&part, &limb[i], GROUP_BITS * i);
        add_multiple(r, r, &part, 1);
    }
}

// MARK: Runs

/// Forgets everything.
static void end_proof(void) {
    free(atoms);
    free(known);
    atoms = 0;
    known = 0;
    atom_count = atom_room = 0;
    equation_count = 0;
}

static void begin_proof(void) {
    end_proof();
    known = calloc(KNOWN_MAX, sizeof *known);
    if (!known) abort();
}
