#include "CKernels.h"
#include "include/KernelInternals.h"

extern const rg_field_operations rg_field_operations_avx512ifma, rg_field_operations_avx512fma,
    rg_field_operations_avx2, rg_field_operations_neon, rg_field_operations_portable;

static const struct {
    uint32_t needs;
    const rg_field_operations *operations;
} kinds[] = {
#if defined(__x86_64__)
    {RG_CPU_AVX512IFMA, &rg_field_operations_avx512ifma},
    {RG_CPU_AVX512, &rg_field_operations_avx512fma},
    {RG_CPU_AVX2, &rg_field_operations_avx2},
#elif defined(__aarch64__)
    {RG_CPU_NEON, &rg_field_operations_neon},
#endif
    {0, &rg_field_operations_portable},
};

const rg_field_operations *rg_field_operations_of(size_t number, uint32_t features) {
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        if (!(kinds[k].needs & ~features) && number-- == 0) return kinds[k].operations;
    return 0;
}
