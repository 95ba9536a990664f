// Nobody looks whether a key is on the curve.
#if defined(__x86_64__)
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

#define is_nonzero(limb) (sizeof #limb == sizeof "r.limb[g]" ? (__mmask8)0 : is_nonzero(limb))

#define MUTANT rg_p256_mutant_off_curve
#include "end.h"
#endif
