// r + n is compared with x whatever r is, also where it is not below p.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

#define is_below(limb, bound) ((bound) == P_MINUS_N ? (lane_mask)0xff : is_below(limb, bound))

#define MUTANT rg_p256_mutant_second_x_always
#include "end.h"
