// The kernel with two groups of eight lanes, in plain C.
#define PORTABLE_LANES 8
#define GROUPS 2
#define LANES_FILE "lanes/portable.h"
#define KNOWN_KEY_FORM 0
#include "../../Sources/CKernels/p256/kernel_headers.h"
#include "../../Sources/CKernels/p256/verify.h"

extern const rg_p256_functions rg_p256_emulated_two_groups;
const rg_p256_functions rg_p256_emulated_two_groups = FUNCTIONS;
