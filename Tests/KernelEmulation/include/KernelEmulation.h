// The P-256 kernel with plain C in the place of its instructions. It runs on every processor, so that the kernel's
// tests run there too.
#pragma once

#include "CKernels.h"
#include "KernelInternals.h"

/// As `rg_kernels`, best first. They need no feature.
extern const rg_kernel *const rg_emulated_kernels;
extern const size_t rg_emulated_kernel_count;

extern const rg_field_operations rg_emulated_field_operations, rg_emulated_field_operations_doubles;

/// Operations on whole vectors of eight lanes.
struct operations {
    uint64_t multiply_adds, simple;
};
/// The kernel with one group of eight lanes, which counts. It is no kernel of the table. One thread uses it at a time.
extern const rg_p256_functions *const rg_p256_counted;
/// What it has done since the last call.
struct operations rg_take_operations(void);
