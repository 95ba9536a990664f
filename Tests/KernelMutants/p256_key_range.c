// Coordinates may be p and more.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

INLINE lane_mask broken_is_below(const lanes limb[LIMBS], const uint64_t bound[LIMBS]) {
    return bound == P_LIMBS ? 0xff : is_below(limb, bound);
}
#define is_below broken_is_below

#define MUTANT rg_p256_mutant_key_range
#include "end.h"
