// With the SHA-2 instructions of ARMv8, bytes before the rest of a message get into its last block.
#if defined(__aarch64__)
#include "CKernels.h"

#define rg_sha256_nodes_armsha2 mutant_armsha2_cut_nodes
#define rg_sha256_messages_armsha2 mutant_armsha2_cut_messages
#include <arm_neon.h>
// Indices above 15 count from the beginning again, where the true instruction gives zero.
#undef vqtbl1q_u8
#define vqtbl1q_u8(bytes, indices) wrapped_lookup(bytes, indices)
static uint8x16_t wrapped_lookup(uint8x16_t bytes, uint8x16_t indices) {
    uint8_t from[16], at[16], to[16];
    vst1q_u8(from, bytes);
    vst1q_u8(at, indices);
    for (int i = 0; i < 16; i++) to[i] = from[at[i] & 15];
    return vld1q_u8(to);
}
#include "../../Sources/CKernels/sha256/sha256_armsha2.c"

extern const rg_sha256_functions rg_sha256_mutant_armsha2_cut;
const rg_sha256_functions rg_sha256_mutant_armsha2_cut = {2, rg_sha256_nodes_armsha2, rg_sha256_messages_armsha2};
#endif
