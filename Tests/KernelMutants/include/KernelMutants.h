// Kernels that are broken on purpose, in one way each. The self-tests have to refuse every mutant of the table, and a
// mutant that breaks a bound has to abort. The mutants of the P-256 kernel run on every processor.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "CKernels.h"

/// As `rg_kernels`.
extern const rg_kernel *const rg_mutants;
extern const size_t rg_mutant_count;

/// The bounds that the P-256 kernel checks in debug builds, by the names that it prints.
extern const char *const *const rg_bounds;
extern const size_t rg_bound_count;

/// Runs a P-256 kernel with checks that breaks bound number `bound`, and aborts there. Returns when there is no such
/// bound: then nothing is broken. One call at a time.
void rg_run_with_broken_bound(size_t bound);
/// Squares p in the field of words, with checks, and aborts there.
void rg_run_with_broken_word(void);
