// Lanes 4 and 8 of a whole group are swapped.
#if defined(__x86_64__)
#include "CKernels.h"

#define rg_sha256_nodes_avx512 mutant_lanes_swapped_nodes
#define rg_sha256_messages_avx512 mutant_lanes_swapped_messages
#include <immintrin.h>
#undef _mm512_shuffle_i32x4
#define _mm512_shuffle_i32x4(a, b, order) \
    ((__m512i)__builtin_ia32_shuf_i32x4((__v16si)(a), (__v16si)(b), (order) == 0xdd ? 0xd7 : (order)))
#include "../../Sources/CKernels/sha256/sha256_avx512.c"

extern const rg_sha256_functions rg_sha256_mutant_lanes_swapped;
const rg_sha256_functions rg_sha256_mutant_lanes_swapped = {16, rg_sha256_nodes_avx512, rg_sha256_messages_avx512};
#endif
