// With AVX2, the words of the first and of the last four messages of a group are exchanged in half of the words.
#if defined(__x86_64__)
#include "CKernels.h"

#define rg_sha256_nodes_avx2 mutant_avx2_lanes_swapped_nodes
#define rg_sha256_messages_avx2 mutant_avx2_lanes_swapped_messages
#include <immintrin.h>
#undef _mm256_permute2x128_si256
#define _mm256_permute2x128_si256(a, b, order) \
    ((__m256i)__builtin_ia32_permti256((__v4di)(a), (__v4di)(b), (order) == 0x31 ? 0x13 : (order)))
#include "../../Sources/CKernels/sha256/sha256_avx2.c"

extern const rg_sha256_functions rg_sha256_mutant_avx2_lanes_swapped;
const rg_sha256_functions rg_sha256_mutant_avx2_lanes_swapped = {8, rg_sha256_nodes_avx2, rg_sha256_messages_avx2};
#endif
