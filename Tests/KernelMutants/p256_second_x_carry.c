// n is added to a small r without the carry out of the lowest limb.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

INLINE void broken_add_order(lanes sum[LIMBS], const lanes r[LIMBS], lane_mask small) {
    add_order(sum, r, small);
    const lanes lowest = choose(small, plus(r[0], broadcast(N_LIMBS[0])), r[0]);
    sum[1] = low_bits(minus(sum[1], carry_of(lowest)));
}
#define add_order broken_add_order

#define MUTANT rg_p256_mutant_second_x_carry
#include "end.h"
