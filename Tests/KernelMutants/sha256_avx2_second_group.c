// With AVX2, of two groups of messages that go together, the second gets the first one's digests.
#if defined(__x86_64__)
#include "CKernels.h"

#define rg_sha256_nodes_avx2 mutant_avx2_second_group_nodes
#define rg_sha256_messages_avx2 mutant_avx2_second_group_messages

#include "../../Sources/CKernels/sha256/sha256_avx2.c"
static void first_repeated(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    rg_sha256_messages_avx2(messages, length, digests, count);
    for (size_t i = LANES; i < count && i < 2 * LANES; i++) {
        memcpy(digests + i * DIGEST_BYTES, digests + (i - LANES) * DIGEST_BYTES, DIGEST_BYTES);
    }
}

extern const rg_sha256_functions rg_sha256_mutant_avx2_second_group;
const rg_sha256_functions rg_sha256_mutant_avx2_second_group = {8, rg_sha256_nodes_avx2, first_repeated};
#endif
