// The field with the lanes of AVX2 with FMA.
#define SYMBOLIC_LANES 4
#define SYMBOLIC_DOUBLES 1
#define SYMBOLIC_SHIFTS_ARE_QUICKER 1
#define SYMBOLIC_SIGNED_SHIFTS 0
#define LANES_OF "lanes/avx2.h"
#define PROOF rg_field_proof_avx2
#include "field_proof.h"
