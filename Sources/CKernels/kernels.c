#include "include/CKernels.h"

#include "sha256/sha256.h"

// MARK: - Features

#if defined(__x86_64__)
#include <cpuid.h>

/// The extended control register that says which registers the operating system saves.
__attribute__((target("xsave"))) static uint64_t saved_registers(void) { return __builtin_ia32_xgetbv(0); }

uint32_t rg_cpu_features(void) {
    uint32_t a, b, c, d, c1;
    uint32_t features = 0;
    if (!__get_cpuid(1, &a, &b, &c1, &d)) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if ((b & bit_SHA) && (c1 & bit_SSSE3) && (c1 & bit_SSE4_1)) features |= RG_CPU_SHA;
    if (!(c1 & bit_OSXSAVE)) return features;
    const uint64_t saved = saved_registers();
    // SSE, and the upper halves of the YMM registers.
    const uint64_t ymm = 0x06;
    if ((saved & ymm) != ymm) return features;
    if ((b & bit_AVX2) && (b & bit_BMI2) && (c1 & bit_FMA)) features |= RG_CPU_AVX2;
    // The mask registers and both halves of the ZMM registers besides.
    const uint64_t zmm = 0xe6;
    if ((saved & zmm) != zmm) return features;
    const uint32_t avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    if ((b & avx512) == avx512) {
        features |= RG_CPU_AVX512;
        if ((b & bit_AVX512IFMA) && (b & bit_BMI2) && (c & bit_AVX512VBMI)) features |= RG_CPU_AVX512IFMA;
    }
    return features;
}

#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

uint32_t rg_cpu_features(void) {
    // HWCAP_SHA2 of <asm/hwcap.h>.
    const unsigned long sha2 = 1ul << 6;
    return RG_CPU_NEON | (getauxval(AT_HWCAP) & sha2 ? RG_CPU_ARM_SHA2 : 0u);
}

#elif defined(__aarch64__) && defined(__APPLE__)

// Every processor of Apple's with 64 bits has the SHA-2 instructions.
uint32_t rg_cpu_features(void) { return RG_CPU_NEON | RG_CPU_ARM_SHA2; }

#elif defined(__aarch64__)

uint32_t rg_cpu_features(void) { return RG_CPU_NEON; }

#else

uint32_t rg_cpu_features(void) { return 0; }

#endif

// MARK: - Kernels

#if defined(__x86_64__)
extern const rg_p256_functions rg_p256_avx512ifma_x16, rg_p256_avx512ifma_x8, rg_p256_avx512fma_x8, rg_p256_avx2_x4;

static const rg_sha256_functions sha256_avx512 = {16, rg_sha256_nodes_avx512, rg_sha256_messages_avx512};
static const rg_sha256_functions sha256_shani = {2, rg_sha256_nodes_shani, rg_sha256_messages_shani};
static const rg_sha256_functions sha256_avx2 = {8, rg_sha256_nodes_avx2, rg_sha256_messages_avx2};
#endif

extern const rg_p256_functions rg_p256_portable_x1;

#if defined(__aarch64__)
extern const rg_p256_functions rg_p256_neon_x2;
static const rg_sha256_functions sha256_armsha2 = {2, rg_sha256_nodes_armsha2, rg_sha256_messages_armsha2};
#endif

static const rg_kernel kernels[] = {
#if defined(__x86_64__)
    {"sha256-avx512", RG_CPU_AVX512, &sha256_avx512, 0},
    {"sha256-shani", RG_CPU_SHA, &sha256_shani, 0},
    {"sha256-avx2", RG_CPU_AVX2, &sha256_avx2, 0},
    {"p256-avx512ifma-x16", RG_CPU_AVX512 | RG_CPU_AVX512IFMA, 0, &rg_p256_avx512ifma_x16},
    {"p256-avx512ifma-x8", RG_CPU_AVX512 | RG_CPU_AVX512IFMA, 0, &rg_p256_avx512ifma_x8},
    {"p256-avx512fma-x8", RG_CPU_AVX512, 0, &rg_p256_avx512fma_x8},
    {"p256-avx2-x4", RG_CPU_AVX2, 0, &rg_p256_avx2_x4},
#endif
#if defined(__aarch64__)
    {"sha256-armsha2", RG_CPU_NEON | RG_CPU_ARM_SHA2, &sha256_armsha2, 0},
    {"p256-neon-x2", RG_CPU_NEON, 0, &rg_p256_neon_x2},
#endif
    {"p256-portable", 0, 0, &rg_p256_portable_x1},
};

const rg_kernel *const rg_kernels = kernels;
const size_t rg_kernel_count = sizeof kernels / sizeof kernels[0];
