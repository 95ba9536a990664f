// The run of a proof, with a mutant or without, and with every sequence of decisions.
#pragma once

#include "mutants.h"
#include "symbolic_lanes.h"

#if FORKS
/// Runs `prove` for every sequence of decisions.
static void for_all_decisions(void (*prove)(void)) {
    unsigned runs = 1;
    for (script = 0; script < runs; script++) {
        decided = equation_count = 0;
        prove();
        if (decided > 12) fail("too many decisions");
        if (runs < 1u << decided) runs = 1u << decided;
    }
    script = 0;
    equation_count = 0;
}
#endif

/// Runs the proof with the mutant. Returns how many claims fail, at least; with a mutant, the first one ends the run.
static long run_proof(size_t chosen, const char **failed, void (*prove_all)(void)) {
    jmp_buf escape;
    begin_proof();
    mutant = chosen;
    proof_failures = 0;
    product_count = 0;
    first_failure = 0;
    after_failure = mutant < MUTANT_COUNT ? &escape : 0;
    if (!after_failure || setjmp(escape) == 0) prove_all();
    end_proof();
    *failed = first_failure;
    return proof_failures;
}
