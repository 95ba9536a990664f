// Kernels with eight lanes and known keys of two columns.
#define SYMBOLIC_LANES 8
#define SYMBOLIC_SIGNED_SHIFTS 1
#define GROUPS 1
#define KNOWN_KEY_FORM 1
#define LANES_OF "lanes/avx512fma.h"
#define PROOF rg_group_proof_x8_two_columns
#include "group_proof.h"
