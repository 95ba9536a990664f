// The carry out of the second limb of a square is lost.
#include "begin.h"
#include "../../Sources/CKernels/p256/field.h"

INLINE void broken_reduce_row(lanes t[GROUPS][2 * LIMBS], int i) {
    const lanes carry = shift_right(t[0][i], LIMB_BITS);
    reduce_row(t, i);
    if (i == 1) t[0][2] = minus(t[0][2], carry);
}
INLINE Sum broken_square(const Digits *a) {
    lanes t[GROUPS][2 * LIMBS];
    clear(t, 1, 1);
    square_into(t, a);
    EACH_LIMB(i) broken_reduce_row(t, i);
    return upper_half(t);
}
#define square broken_square

#define MUTANT rg_p256_mutant_lost_carry
#include "end.h"
