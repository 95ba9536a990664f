// Doubling leaves Z as it was for points of even V.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"

NOINLINE void broken_double_point(Point *p) {
    const Digits z = p->z;
    const lane_mask odd = nonzero_lanes(bit_and(p->v_digits.limb[0][0], broadcast(0xff)));
    double_point(p);
    EACH_LIMB(i) p->z.limb[0][i] = choose(odd, p->z.limb[0][i], z.limb[0][i]);
}
#define double_point broken_double_point

#define MUTANT rg_p256_mutant_doubling
#include "end.h"
