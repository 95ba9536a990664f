// The digests of a last group that is not full are rotated by one.
#if defined(__x86_64__)
#include "CKernels.h"

#define rg_sha256_nodes_avx512 mutant_tail_nodes
#define rg_sha256_messages_avx512 mutant_tail_messages

#include "../../Sources/CKernels/sha256/sha256_avx512.c"
static void rotated(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    rg_sha256_messages_avx512(messages, length, digests, count);
    const size_t rest = count % 16;
    if (rest < 2) return;
    uint8_t first[32], *tail = digests + 32 * (count - rest);
    memcpy(first, tail, 32);
    memmove(tail, tail + 32, 32 * (rest - 1));
    memcpy(tail + 32 * (rest - 1), first, 32);
}

extern const rg_sha256_functions rg_sha256_mutant_tail;
const rg_sha256_functions rg_sha256_mutant_tail = {16, rg_sha256_nodes_avx512, rotated};
#endif
