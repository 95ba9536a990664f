// The kernel with one group of lanes, in plain C.
#include "emulated_instructions.h"
#define GROUPS 1
#include "../../Sources/CKernels/p256/verify.h"

extern const rg_p256_functions rg_p256_emulated_one_group;
const rg_p256_functions rg_p256_emulated_one_group = {BLOCK,  sizeof(Workspace), build_generator,
                                                      verify, verify_known,      build_known};
