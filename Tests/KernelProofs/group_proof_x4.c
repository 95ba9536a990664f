// Kernels with four lanes without signed shifts.
#define SYMBOLIC_LANES 4
#define SYMBOLIC_SIGNED_SHIFTS 0
#define GROUPS 1
#define KNOWN_KEY_FORM 1
#define LANES_OF "lanes/avx2.h"
#define PROOF rg_group_proof_x4
#include "group_proof.h"
