// The largest r whose r + n is an x of the curve, p - n - 3, is not compared with it.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

static const uint64_t largest_r[LIMBS] = {0x6353d039cdaab, 0x5358e8617b0c4, 0x431905};
#define P_MINUS_N largest_r

#define MUTANT rg_p256_mutant_second_x_limit
#include "end.h"
