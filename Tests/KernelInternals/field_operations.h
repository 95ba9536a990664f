// The operations of the field on one group of lanes, as static functions and a table of them, for the file that has
// included the kernel's headers.
#pragma once

#include "include/KernelInternals.h"

INLINE Digits load_digits(const uint64_t *words) {
    Digits r;
    EACH_LIMB(i) r.limb[0][i] = load(words + LANES * i);
    return r;
}

INLINE void store_limbs(uint64_t *words, const lanes limb[LIMBS]) {
    EACH_LIMB(i) store(words + LANES * i, limb[i]);
}

#define OPERATION(name, ...)                                                     \
    static void run_##name(uint64_t *result, const uint64_t *const *operands) {  \
        const arithmetic before = begin_arithmetic();                            \
        const Digits a = load_digits(operands[0]), b = load_digits(operands[1]); \
        const Digits c = load_digits(operands[2]), d = load_digits(operands[3]); \
        (void)b, (void)c, (void)d;                                               \
        __VA_ARGS__                                                              \
        end_arithmetic(before);                                                  \
    }

OPERATION(product, const Sum r = product(&a, &b); store_limbs(result, r.limb[0]);)
OPERATION(square, const Sum r = square(&a); store_limbs(result, r.limb[0]);)
OPERATION(square_plus_product, const Sum r = square_plus_product(&a, &b, &c); store_limbs(result, r.limb[0]);)
OPERATION(product_plus_product, const Sum r = product_plus_product(&a, &b, &c, &d); store_limbs(result, r.limb[0]);)
OPERATION(montgomery_p, lanes r[LIMBS]; montgomery(r, a.limb[0], b.limb[0], &FIELD_PRIME); store_limbs(result, r);)
OPERATION(montgomery_n, lanes r[LIMBS]; montgomery(r, a.limb[0], b.limb[0], &GROUP_ORDER); store_limbs(result, r);)
OPERATION(canonical, Digits r; canonical(&r, &a); store_limbs(result, r.limb[0]);)
OPERATION(reduce_weakly, const Sum r = reduce_weakly(sum_of(&a)); store_limbs(result, r.limb[0]);)

#define ENTRY(name, operands) \
    { #name, operands, run_##name }

static const rg_field_operation operations[] = {
    ENTRY(product, 2),      ENTRY(square, 1),       ENTRY(square_plus_product, 3), ENTRY(product_plus_product, 4),
    ENTRY(montgomery_p, 2), ENTRY(montgomery_n, 2), ENTRY(canonical, 1),           ENTRY(reduce_weakly, 1),
};

/// The operations of the lanes that the file has included.
#define FIELD_OPERATIONS \
    { LANES_FILE, LANES, HAS_SIGNED_SHIFTS, SHIFTS_ARE_QUICKER, operations, sizeof operations / sizeof operations[0] }
