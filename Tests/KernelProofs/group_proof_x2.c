// Kernels with two lanes.
#define SYMBOLIC_LANES 2
#define SYMBOLIC_SIGNED_SHIFTS 1
#define GROUPS 1
#define KNOWN_KEY_FORM 1
#define LANES_OF "lanes/neon.h"
#define PROOF rg_group_proof_x2
#include "group_proof.h"
