#include "include/KernelInternals.h"

#if defined(__x86_64__)
#define GROUPS 1
#define LANES_FILE "lanes/avx2.h"
#include "../../Sources/CKernels/p256/kernel_headers.h"

#pragma clang attribute push(__attribute__((target("avx2,fma,bmi2"))), apply_to = function)
#include "../../Sources/CKernels/p256/field.h"
#include "field_operations.h"
#pragma clang attribute pop

const rg_field_operations rg_field_operations_avx2 = FIELD_OPERATIONS;
#endif
