// An r that stands for two x coordinates is compared with one only.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

static const uint64_t nothing[LIMBS];
#define P_MINUS_N nothing

#define MUTANT rg_p256_mutant_second_x
#include "end.h"
