// Kernels with two groups of eight lanes.
#define SYMBOLIC_LANES 8
#define SYMBOLIC_SIGNED_SHIFTS 1
#define GROUPS 2
#define KNOWN_KEY_FORM 0
#define LANES_OF "lanes/avx512ifma.h"
#define PROOF rg_group_proof_x16
#include "group_proof.h"
