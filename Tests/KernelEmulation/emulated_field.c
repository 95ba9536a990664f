// The arithmetic of the field, in plain C.
#include "include/KernelEmulation.h"

#define PORTABLE_LANES 8
#define GROUPS 1
#define LANES_FILE "lanes/portable.h"
#include "../../Sources/CKernels/p256/field.h"
#include "../KernelInternals/field_operations.h"

const rg_field_operations rg_emulated_field_operations = FIELD_OPERATIONS;
