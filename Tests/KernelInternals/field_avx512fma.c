#include "include/KernelInternals.h"

#if defined(__x86_64__)
#define GROUPS 1
#define LANES_FILE "lanes/avx512fma.h"
#include "../../Sources/CKernels/p256/kernel_headers.h"

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)
#include "../../Sources/CKernels/p256/field.h"
#include "field_operations.h"
#pragma clang attribute pop

const rg_field_operations rg_field_operations_avx512fma = FIELD_OPERATIONS;
#endif
