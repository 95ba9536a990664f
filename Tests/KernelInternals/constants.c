#include "include/KernelInternals.h"

#include "../../Sources/CKernels/p256/constants.h"
#include "../../Sources/CKernels/sha256/sha256_constants.h"

#define LIMBS_OF(name) \
    { #name, 52, sizeof name / sizeof name[0], name }
#define WORDS_OF(name) \
    { #name, 64, sizeof name / sizeof name[0], name }

static const rg_p256_constant constants[] = {
    LIMBS_OF(P_LIMBS),
    WORDS_OF(P_WORDS),
    LIMBS_OF(P_ONE),
    LIMBS_OF(P_THREE),
    LIMBS_OF(P_SQUARED_RADIX),
    LIMBS_OF(P_CUBED_RADIX),
    LIMBS_OF(CURVE_B),
    LIMBS_OF(GENERATOR_X),
    LIMBS_OF(GENERATOR_Y),
    LIMBS_OF(N_LIMBS),
    WORDS_OF(N_WORDS),
    LIMBS_OF(N_SQUARED_RADIX),
    LIMBS_OF(P_MINUS_N),
    LIMBS_OF(N_CUBED_RADIX),
    {"P_FACTOR", 52, 1, &P_FACTOR},
    {"N_FACTOR", 52, 1, &N_FACTOR},
};

const rg_p256_constant *const rg_p256_constants = constants;
const size_t rg_p256_constant_count = sizeof constants / sizeof constants[0];

const uint32_t *const rg_sha256_tested_initial_state = rg_sha256_initial_state;
const uint32_t *const rg_sha256_tested_round_constants = rg_sha256_round_constants;
const uint32_t *const rg_sha256_tested_node_padding = rg_sha256_node_padding;
