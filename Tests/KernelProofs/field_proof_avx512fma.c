// The field with the lanes of AVX-512 with FMA.
#define SYMBOLIC_LANES 8
#define SYMBOLIC_DOUBLES 1
#define SYMBOLIC_SHIFTS_ARE_QUICKER 1
#define SYMBOLIC_SIGNED_SHIFTS 1
#define LANES_OF "lanes/avx512fma.h"
#define PROOF rg_field_proof_avx512fma
#include "field_proof.h"
