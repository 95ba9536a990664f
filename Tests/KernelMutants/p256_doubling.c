// Doubling leaves Z as it was for points of even V.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"

NOINLINE void broken_double_point(Point *p) {
    const Digits z = p->z;
    const __mmask8 even = _mm512_testn_epi64_mask(p->v_digits.limb[0][0], broadcast(0xff));
    double_point(p);
    EACH_LIMB(i) p->z.limb[0][i] = _mm512_mask_mov_epi64(p->z.limb[0][i], even, z.limb[0][i]);
}
#define double_point broken_double_point

#define MUTANT rg_p256_mutant_doubling
#include "end.h"
