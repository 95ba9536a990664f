// The bit 1 behind a message stands at the other end of its byte.
#if defined(__x86_64__)
#include "CKernels.h"

#define rg_sha256_nodes_avx512 mutant_padding_nodes
#define rg_sha256_messages_avx512 mutant_padding_messages
#include <immintrin.h>
#define _mm512_maskz_set1_epi8(mask, byte) _mm512_maskz_set1_epi8(mask, (char)((byte) == (char)0x80 ? 1 : (byte)))
#include "../../Sources/CKernels/sha256/sha256_avx512.c"

extern const rg_sha256_functions rg_sha256_mutant_padding;
const rg_sha256_functions rg_sha256_mutant_padding = {16, rg_sha256_nodes_avx512, rg_sha256_messages_avx512};
#endif
