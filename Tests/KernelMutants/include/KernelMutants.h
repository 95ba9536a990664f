// Kernels that are broken on purpose: each has one thing wrong that its name tells. Whatever vets kernels must
// refuse every one of them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "CKernels.h"

/// As `rg_kernels`.
extern const rg_kernel *const rg_mutants;
extern const size_t rg_mutant_count;
