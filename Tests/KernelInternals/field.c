#include "include/KernelInternals.h"

#if defined(__x86_64__)
#define GROUPS 1
#include "../../Sources/CKernels/p256/avx512ifma.h"

#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi2"))), apply_to = function)

INLINE Digits load(const uint64_t *words) {
    Digits r;
    EACH_LIMB(i) r.limb[0][i] = _mm512_loadu_si512(words + LANES * i);
    return r;
}

INLINE void store(uint64_t *words, const lanes limb[LIMBS]) {
    EACH_LIMB(i) _mm512_storeu_si512(words + LANES * i, limb[i]);
}

#define OPERATION(name, ...)                                                    \
    static void run_##name(uint64_t *result, const uint64_t *const *operands) { \
        const Digits a = load(operands[0]), b = load(operands[1]);              \
        const Digits c = load(operands[2]), d = load(operands[3]);              \
        (void)b, (void)c, (void)d;                                              \
        __VA_ARGS__                                                             \
    }

OPERATION(product, const Sum r = product(&a, &b); store(result, r.limb[0]);)
OPERATION(square, const Sum r = square(&a); store(result, r.limb[0]);)
OPERATION(square_plus_product, const Sum r = square_plus_product(&a, &b, &c); store(result, r.limb[0]);)
OPERATION(product_plus_product, const Sum r = product_plus_product(&a, &b, &c, &d); store(result, r.limb[0]);)
OPERATION(montgomery_p, lanes r[LIMBS]; montgomery(r, a.limb[0], b.limb[0], &FIELD_PRIME); store(result, r);)
OPERATION(montgomery_n, lanes r[LIMBS]; montgomery(r, a.limb[0], b.limb[0], &GROUP_ORDER); store(result, r);)
OPERATION(canonical, Digits r; canonical(&r, &a); store(result, r.limb[0]);)
OPERATION(reduce_weakly, const Sum r = reduce_weakly(sum_of(&a)); store(result, r.limb[0]);)

#pragma clang attribute pop

#define ENTRY(name, operands) \
    { #name, operands, run_##name }

static const rg_field_operation operations[] = {
    ENTRY(product, 2),      ENTRY(square, 1),       ENTRY(square_plus_product, 3), ENTRY(product_plus_product, 4),
    ENTRY(montgomery_p, 2), ENTRY(montgomery_n, 2), ENTRY(canonical, 1),           ENTRY(reduce_weakly, 1),
};

const rg_field_operation *const rg_field_operations = operations;
const size_t rg_field_operation_count = sizeof operations / sizeof operations[0];

#else

const rg_field_operation *const rg_field_operations = 0;
const size_t rg_field_operation_count = 0;

#endif
