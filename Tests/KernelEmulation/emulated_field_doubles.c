// The arithmetic of the field with doubles and without signed shifts, in plain C.
#include "include/KernelEmulation.h"

#define PORTABLE_LANES 4
#define PORTABLE_SIGNED_SHIFTS 0
#define GROUPS 1
#define LANES_FILE "../../../Tests/KernelEmulation/double_lanes.h"
#include "../../Sources/CKernels/p256/field.h"
#include "../KernelInternals/field_operations.h"

const rg_field_operations rg_emulated_field_operations_doubles = FIELD_OPERATIONS;
