// Proofs of the bounds that the P-256 kernels rely on, for all inputs.
//
// The proofs run the kernels' sources, as they are compiled for each kind of lanes, with lanes that hold a form over
// unknown integers instead of a number (linear_forms.h, symbolic_lanes.h). There are two levels:
//
// - The functions of the field keep their contracts: no limb leaves its range, no accumulator overflows, no double is
//   rounded, and a result is congruent to what it should be.
// - All that calls them respects the contracts, on every path through a batch and through the making of tables. Every
//   bound that the sources state is claimed and shown.
//
// A proof can be run with a mutant: one change that breaks a bound. Then it has to fail.
#ifndef KERNEL_PROOFS_H
#define KERNEL_PROOFS_H

#include <stddef.h>

/// A bound that the sources state, and the values that can be reached, in multiples of p.
typedef struct {
    const char *bound;
    double low, high, claimed_low, claimed_high;
} rg_claim;

typedef struct {
    /// The kind of lanes, by the file in Sources/CKernels/p256/lanes, and what that file says of them.
    const char *lanes_file;
    int lanes, groups, signed_shifts, shifts_are_quicker;
    /// Runs the proof, with a mutant (or `mutant_count` for none). Returns how many claims do not follow, at least, and
    /// the first of them; writes up to 256 claims about values and their number.
    long (*run)(size_t mutant, const char **failed, rg_claim claims[256], size_t *claim_count);
    const char *const *mutants;
    size_t mutant_count;
} rg_proof;

/// The proofs, for every kind of lanes and for every number of lanes and groups.
extern const rg_proof *const *const rg_field_proofs, *const *const rg_group_proofs;
extern const size_t rg_field_proof_count, rg_group_proof_count;

#endif
