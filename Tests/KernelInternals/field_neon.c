#include "include/KernelInternals.h"

#if defined(__aarch64__)
#define GROUPS 1
#define LANES_FILE "lanes/neon.h"
#include "../../Sources/CKernels/p256/kernel_headers.h"

#include "../../Sources/CKernels/p256/field.h"
#include "field_operations.h"

const rg_field_operations rg_field_operations_neon = FIELD_OPERATIONS;
#endif
