// The arithmetic of the field, in plain C.
#include "include/KernelEmulation.h"

#include "emulated_instructions.h"
#define GROUPS 1
#include "../../Sources/CKernels/p256/field.h"
#include "../KernelInternals/field_operations.h"

const rg_field_operation *const rg_emulated_field_operations = operations;
const size_t rg_emulated_field_operation_count = sizeof operations / sizeof operations[0];
