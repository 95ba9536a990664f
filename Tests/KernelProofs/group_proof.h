// The second level: all that calls the functions of the field respects their contracts, on every path. The including
// file defines the kind of lanes (symbolic_lanes.h), GROUPS, and PROOF.
#include "include/KernelProofs.h"

#define FORM_TERMS 40
#define FORM_MEMORY 8192
#define FORKS 0
#define SYMBOLIC_DOUBLES 0
#define SYMBOLIC_SHIFTS_ARE_QUICKER 1
#define KERNEL_CHECKS
#define LANES_FILE "../../../Tests/KernelProofs/symbolic_lanes.h"

// Sums to which a p too few is added, and sums that are not reduced, as the sources spell them; and masks.
#define MUTANTS(MUTANT)                                                                  \
    MUTANT(point, "sum_of(&a->x)")                                                       \
    MUTANT(doubling_x, "subtract(subtract(squared, *s), *s)")                            \
    MUTANT(addition_slope, "*v")                                                         \
    MUTANT(addition_x, "subtract(subtract(add(squared, *j), *w), *w)")                   \
    MUTANT(chain_difference, "subtract(sum_of(a), sum_of(b))")                           \
    MUTANT(chain_alpha, "subtract(square(&p->x), sum_of(&one))")                         \
    MUTANT(chain_step, "subtract(subtract(square(&alpha), s_sum), s_sum)")               \
    MUTANT(chain_x, "subtract(subtract(square(&y_difference), sum_of(&b)), sum_of(&c))") \
    MUTANT(tree_y_difference, "subtract(sum_of_signed(&b->y2), sum_of_signed(&a->y2))")  \
    MUTANT(tree_x, "subtract(subtract(square(slope), sum_of(xa)), sum_of(xb))")          \
    MUTANT(tree_y, "subtract(product(slope, x_difference), sum_of_signed(y2))")          \
    MUTANT(curve, "subtract(square(x), sum_of(&three))")                                 \
    MUTANT(key, "subtract(square(&y), sum_of(&rhs))")                                    \
    MUTANT(outcome, "subtract(sum->x, product(&c, zz))")                                 \
    MUTANT(leaf, "subtract(sum_of(&zero), sum_of(&leaf->y2))")                           \
    MUTANT(doubling_alpha, "add(add(r, r), r)")                                          \
    MUTANT(addition_h, "difference")                                                     \
    MUTANT(addition_v, "add(half, half)")                                                \
    MUTANT(mask, "r.limb[g][i]")                                                         \
    MUTANT(canonical, "r->limb[g]")                                                      \
    MUTANT(scalar, "u")                                                                  \
    MUTANT(row, "bits")

#include "contracts.h"

#define low_bits(limb) (is_changed(#limb) ? (limb) : low_bits(limb))
#include "../../Sources/CKernels/p256/field.h"
#undef low_bits
#include "../../Sources/CKernels/p256/group.h"

/// Whether the first inversion on each level of a tree fails, so that the tree is repaired.
static int tree_is_repaired, tree_inversions;
static int tree_inversion(Digits *inverse, const Digits *z) {
    const int is_inverted = invert_digits(inverse, z);
    return tree_is_repaired && tree_inversions++ % 2 == 0 ? 0 : is_inverted;
}
#define invert_digits tree_inversion
#include "../../Sources/CKernels/p256/tree.h"
#undef invert_digits

#define bit_and(a, b) (is_changed(#a) ? (a) : bit_and(a, b))
#include "../../Sources/CKernels/p256/scalar.h"
#undef bit_and
#include "../../Sources/CKernels/p256/verify.h"

#include "proof_run.h"

// MARK: The proof

static Workspace *workspace;
static const uint8_t compressed_key[33] = {2}, plain_key[65] = {4};

/// A batch with new keys and one with known keys. What the bytes say is nowhere looked at: nothing is known of a word
/// that is loaded.
static void prove_batches(size_t count) {
    static rg_p256_check checks[RG_P256_BATCH_MAX];
    static const uint64_t table[ROW_WORDS];
    static const uint64_t *tables[RG_P256_BATCH_MAX];
    static uint8_t outcomes[RG_P256_BATCH_MAX];
    for (size_t i = 0; i < count; i++) {
        checks[i].point = i % 2 ? compressed_key : plain_key;
        tables[i] = table;
    }
    proof_place = "verify";
    verify(checks, count, table, workspace, outcomes);
    proof_place = "verify_known";
    verify_known(checks, tables, count, table, workspace, outcomes);
}

static void prove_tables(void) {
    const uint8_t *points[BLOCK];
    uint64_t *tables[BLOCK] = {0};
    for (int k = 0; k < BLOCK; k++) points[k] = k % 2 ? compressed_key : plain_key;
    proof_place = "build_known";
    build_known(points, tables, BLOCK, workspace);
    // The generator's table has one column as this one, and an odd width: the sign is flipped at the end of a subtable.
    // It has more rows, but in a longer loop each round begins with what the round before claims.
    proof_place = "build_tables";
    static const Shape odd_width = {7, 3, 1};
    build_tables(&workspace->block[0].chain, &workspace->block[0].key, odd_width, tables);
}

/// Every path: batches with single additions and with trees, with what is unknown of every mask on one side and then on
/// the other, and with trees that are repaired.
static void prove_all(void) {
    tree_is_repaired = 0;
    unknown_mask = 0;
    prove_batches(1);
    prove_batches(TREE_BLOCKS_MIN * BLOCK);
    prove_tables();
    tree_is_repaired = 1;
    unknown_mask = EVERY_LANE;
    prove_batches(TREE_BLOCKS_MIN * BLOCK);
}

static long run(size_t chosen, const char **failed, rg_claim claims[256], size_t *claims_written) {
    workspace = calloc(1, sizeof *workspace);
    if (!workspace) abort();
    claim_count = 0;
    const long failures = run_proof(chosen, failed, prove_all);
    free(workspace);
    for (int k = 0; k < claim_count; k++) {
        const ClaimRecord *r = &claim_records[k];
        claims[k] =
            (rg_claim){r->bound, r->low, r->high, (double)r->claimed_low * 1e-6, (double)r->claimed_high * 1e-6};
    }
    *claims_written = (size_t)claim_count;
    return failures;
}

extern const rg_proof PROOF;
const rg_proof PROOF = {LANES_OF, LANES, GROUPS, HAS_SIGNED_SHIFTS, SHIFTS_ARE_QUICKER, run, mutants, MUTANT_COUNT};
