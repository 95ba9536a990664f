// The kernel with four lanes of doubles and without signed shifts, in plain C.
#define PORTABLE_LANES 4
#define PORTABLE_SIGNED_SHIFTS 0
#define GROUPS 1
#define KNOWN_KEY_FORM 1
#define LANES_FILE "../../../Tests/KernelEmulation/double_lanes.h"
#include "../../Sources/CKernels/p256/kernel_headers.h"
#include "../../Sources/CKernels/p256/verify.h"

extern const rg_p256_functions rg_p256_emulated_avx2;
const rg_p256_functions rg_p256_emulated_avx2 = FUNCTIONS;
