#if defined(__x86_64__)
#define GROUPS 1
#define LANES_FILE "lanes/avx512fma.h"
#define KNOWN_KEY_FORM 1
#include "kernel_headers.h"

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#include "verify.h"
#pragma clang attribute pop

extern const rg_p256_functions rg_p256_avx512fma_x8;
const rg_p256_functions rg_p256_avx512fma_x8 = FUNCTIONS;
#endif
