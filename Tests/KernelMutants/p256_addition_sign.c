// Additions take the sign of lane 6 from lane 7.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"

NOINLINE void broken_add_affine(Point *p, const Affine *a, const lane_mask negative[GROUPS]) {
    const lane_mask mixed[GROUPS] = {(lane_mask)((negative[0] & 0xbf) | (negative[0] >> 1 & 0x40))};
    add_affine(p, a, mixed);
}
#define add_affine broken_add_affine

#define MUTANT rg_p256_mutant_addition_sign
#include "end.h"
