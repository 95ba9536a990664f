// The field with the lanes of NEON.
#define SYMBOLIC_LANES 2
#define SYMBOLIC_DOUBLES 1
#define SYMBOLIC_SHIFTS_ARE_QUICKER 1
#define SYMBOLIC_SIGNED_SHIFTS 1
#define LANES_OF "lanes/neon.h"
#define PROOF rg_field_proof_neon
#include "field_proof.h"
