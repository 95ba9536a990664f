#include "include/KernelInternals.h"

#if defined(__x86_64__)
#define GROUPS 1
#include "../../Sources/CKernels/p256/avx512ifma.h"

#pragma clang attribute push( \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512ifma,avx512vbmi,bmi2"))), apply_to = function)

#include "field_operations.h"
#pragma clang attribute pop

const rg_field_operation *const rg_field_operations = operations;
const size_t rg_field_operation_count = sizeof operations / sizeof operations[0];

#else

const rg_field_operation *const rg_field_operations = 0;
const size_t rg_field_operation_count = 0;

#endif
