// The table of kernels: the processor features that each kernel needs, and its functions. Dispatch, self-test, tests
// and benchmarks all read this table.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "p256.h"

/// Prefetches a cache line. The address need not be valid.
static inline void rg_prefetch(const void *address) { __builtin_prefetch(address); }

/// What a processor (and its operating system) can do.
enum {
    /// SHA-NI, with SSSE3 and SSE4.1.
    RG_CPU_SHA = 1,
    /// AVX-512 F, BW, DQ and VL, with its registers saved by the operating system.
    RG_CPU_AVX512 = 2,
    /// AVX-512 IFMA and VBMI besides, and BMI2.
    RG_CPU_AVX512IFMA = 4,
    /// AVX2, FMA and BMI2, with the YMM registers saved by the operating system.
    RG_CPU_AVX2 = 8,
    /// NEON with fused multiply-adds, which every 64-bit ARM processor has.
    RG_CPU_NEON = 16,
    /// The SHA-2 instructions of ARMv8, with NEON.
    RG_CPU_ARM_SHA2 = 32,
};

/// The features of this processor, as bits; 0 where none of them is known for the architecture.
uint32_t rg_cpu_features(void);

/// The functions of one SHA-256 kernel (FIPS 180-4).
typedef struct {
    /// Messages in one step. A last step that is not full costs as much as a full one.
    size_t width;
    /// The digests, 32 bytes each, of `count` messages of 64 bytes that stand one after the other.
    void (*nodes)(const uint8_t *children, uint8_t *digests, size_t count);
    /// The digests of `count` messages of the same length, each at its own address.
    void (*messages)(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count);
} rg_sha256_functions;

/// One kernel. Exactly one kind of functions is there.
typedef struct {
    const char *name;
    /// Features without which its functions must not be called; 0 for plain C.
    uint32_t needs;
    const rg_sha256_functions *sha256;
    const rg_p256_functions *p256;
    /// P-256 kernels with the same number can use one generator's table.
    uint8_t generator_form;
} rg_kernel;

/// All kernels that were compiled in. Measurements decide which one is used; of equally quick ones it is the first.
extern const rg_kernel *const rg_kernels;
extern const size_t rg_kernel_count;
