// With SHA-NI, a schedule forgets the word of seven rounds before.
#if defined(__x86_64__)
#include "CKernels.h"

#define rg_sha256_nodes_shani mutant_shani_schedule_nodes
#define rg_sha256_messages_shani mutant_shani_schedule_messages
#include <immintrin.h>
#undef _mm_alignr_epi8
#define _mm_alignr_epi8(high, low, count) \
    ((count) == 4 ? (low) : (__m128i)__builtin_ia32_palignr128((__v16qi)(high), (__v16qi)(low), (count)))
#include "../../Sources/CKernels/sha256/sha256_shani.c"

extern const rg_sha256_functions rg_sha256_mutant_shani_schedule;
const rg_sha256_functions rg_sha256_mutant_shani_schedule = {2, rg_sha256_nodes_shani, rg_sha256_messages_shani};
#endif
