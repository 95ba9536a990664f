// The weak reduction folds the upper bits without the term 2^192 of the prime.
#include "begin.h"
#include "../../Sources/CKernels/p256/field.h"

INLINE Sum broken_reduce_weakly(Sum a) {
    const lanes high = shift_right(a.limb[0][4], 48);
    a = reduce_weakly(a);
    a.limb[0][3] = plus(a.limb[0][3], shift_left(high, 36));
    return a;
}
#define reduce_weakly broken_reduce_weakly

#define MUTANT rg_p256_mutant_reduction
#include "end.h"
