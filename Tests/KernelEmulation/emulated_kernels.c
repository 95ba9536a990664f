#include "include/KernelEmulation.h"

extern const rg_p256_functions rg_p256_emulated_one_group, rg_p256_emulated_two_groups, rg_p256_emulated_avx512fma,
    rg_p256_emulated_avx2;

static const rg_kernel kernels[] = {
    {"p256-x16, emulated", 0, 0, &rg_p256_emulated_two_groups},
    {"p256-x8, emulated", 0, 0, &rg_p256_emulated_one_group},
    {"p256-avx512fma-x8, emulated", 0, 0, &rg_p256_emulated_avx512fma},
    {"p256-avx2-x4, emulated", 0, 0, &rg_p256_emulated_avx2},
};

const rg_kernel *const rg_emulated_kernels = kernels;
const size_t rg_emulated_kernel_count = sizeof kernels / sizeof kernels[0];
