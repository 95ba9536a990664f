// Round 37 has a constant with one wrong bit.
#if defined(__x86_64__)
#include "CKernels.h"

#define rg_sha256_nodes_avx512 mutant_round_constant_nodes
#define rg_sha256_messages_avx512 mutant_round_constant_messages
#define rg_sha256_round_constants true_round_constants
#include "../../Sources/CKernels/sha256/sha256_constants.h"
#undef rg_sha256_round_constants
static uint32_t broken_round_constants[64];
__attribute__((constructor)) static void break_round_constants(void) {
    for (int t = 0; t < 64; t++) broken_round_constants[t] = true_round_constants[t] ^ (t == 37 ? 1 : 0);
}
#define rg_sha256_round_constants broken_round_constants
#include "../../Sources/CKernels/sha256/sha256_avx512.c"

extern const rg_sha256_functions rg_sha256_mutant_round_constant;
const rg_sha256_functions rg_sha256_mutant_round_constant = {16, rg_sha256_nodes_avx512, rg_sha256_messages_avx512};
#endif
