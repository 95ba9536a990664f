#if defined(__x86_64__)
#define GROUPS 1
#define LANES_FILE "lanes/avx2.h"
#include "kernel_headers.h"

#pragma clang attribute push(__attribute__((target("avx2,fma,bmi2"))), apply_to = function)
#include "verify.h"
#pragma clang attribute pop

extern const rg_p256_functions rg_p256_avx2_x4;
const rg_p256_functions rg_p256_avx2_x4 = FUNCTIONS;
#endif
