// With the SHA-2 instructions of ARMv8, an odd last node is not hashed by itself.
#if defined(__aarch64__)
#include "CKernels.h"

#define rg_sha256_nodes_armsha2 mutant_armsha2_second_stream_nodes
#define rg_sha256_messages_armsha2 mutant_armsha2_second_stream_messages

#include "../../Sources/CKernels/sha256/sha256_armsha2.c"
static void last_forgotten(const uint8_t *children, uint8_t *digests, size_t count) {
    rg_sha256_nodes_armsha2(children, digests, count);
    if (count % 2 == 1 && count > 1) memcpy(digests + 32 * (count - 1), digests + 32 * (count - 2), 32);
}

extern const rg_sha256_functions rg_sha256_mutant_armsha2_second_stream;
const rg_sha256_functions rg_sha256_mutant_armsha2_second_stream = {2, last_forgotten, rg_sha256_messages_armsha2};
#endif
