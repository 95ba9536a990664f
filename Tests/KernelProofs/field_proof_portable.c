// The field with the lanes of plain C.
#define SYMBOLIC_LANES 1
#define SYMBOLIC_DOUBLES 0
#define SYMBOLIC_SHIFTS_ARE_QUICKER 1
#define SYMBOLIC_SIGNED_SHIFTS 1
#define LANES_OF "lanes/portable.h"
#define PROOF rg_field_proof_portable
#include "field_proof.h"
