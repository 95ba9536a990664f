// The field with the lanes of AVX-512 IFMA.
#define SYMBOLIC_LANES 8
#define SYMBOLIC_DOUBLES 0
#define SYMBOLIC_SHIFTS_ARE_QUICKER 0
#define SYMBOLIC_SIGNED_SHIFTS 1
#define LANES_OF "lanes/avx512ifma.h"
#define PROOF rg_field_proof_avx512ifma
#include "field_proof.h"
