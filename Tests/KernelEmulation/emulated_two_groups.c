// The kernel with two groups of lanes, in plain C.
#include "emulated_instructions.h"
#define GROUPS 2
#include "../../Sources/CKernels/p256/verify.h"

extern const rg_p256_functions rg_p256_emulated_two_groups;
const rg_p256_functions rg_p256_emulated_two_groups = {BLOCK,  sizeof(Workspace), build_generator,
                                                       verify, verify_known,      build_known};
