// With AVX2, the byte behind the bit 1 is not zero when the last block has room for the length.
#if defined(__x86_64__)
#include "CKernels.h"

#define rg_sha256_nodes_avx2 mutant_avx2_partial_block_nodes
#define rg_sha256_messages_avx2 mutant_avx2_partial_block_messages
#include <string.h>
static void *set_all_but_one(void *bytes, int value, size_t count) {
    memset(bytes, value, count);
    if (count > 16 && count < 64) ((uint8_t *)bytes)[1] = 1;
    return bytes;
}
#define memset(bytes, value, count) set_all_but_one(bytes, value, count)
#include "../../Sources/CKernels/sha256/sha256_avx2.c"

extern const rg_sha256_functions rg_sha256_mutant_avx2_partial_block;
const rg_sha256_functions rg_sha256_mutant_avx2_partial_block = {8, rg_sha256_nodes_avx2, rg_sha256_messages_avx2};
#endif
