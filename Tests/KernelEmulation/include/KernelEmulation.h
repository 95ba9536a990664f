// The P-256 kernel with plain C in the place of its instructions. It runs on every processor, so that the kernel's
// tests run there too.
#pragma once

#include "CKernels.h"
#include "KernelInternals.h"

/// As `rg_kernels`, best first. They need no feature.
extern const rg_kernel *const rg_emulated_kernels;
extern const size_t rg_emulated_kernel_count;

extern const rg_field_operations rg_emulated_field_operations, rg_emulated_field_operations_doubles;
