#include "include/KernelProofs.h"

extern const rg_proof rg_field_proof_avx512ifma, rg_field_proof_avx512fma, rg_field_proof_avx2, rg_field_proof_neon,
    rg_field_proof_portable, rg_word_proof;
extern const rg_proof rg_group_proof_x8, rg_group_proof_x8_two_columns, rg_group_proof_x16, rg_group_proof_x4,
    rg_group_proof_x2;

static const rg_proof *const field_proofs[] = {
    &rg_field_proof_avx512ifma, &rg_field_proof_avx512fma, &rg_field_proof_avx2,
    &rg_field_proof_neon,       &rg_field_proof_portable,  &rg_word_proof,
};
static const rg_proof *const group_proofs[] = {
    &rg_group_proof_x8, &rg_group_proof_x8_two_columns, &rg_group_proof_x16, &rg_group_proof_x4, &rg_group_proof_x2,
};

const rg_proof *const *const rg_field_proofs = field_proofs, *const *const rg_group_proofs = group_proofs;
const size_t rg_field_proof_count = sizeof field_proofs / sizeof field_proofs[0];
const size_t rg_group_proof_count = sizeof group_proofs / sizeof group_proofs[0];
