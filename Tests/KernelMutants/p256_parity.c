// A compressed key gets the computed root, whatever parity the key names.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

#define even_lanes(lowest) ((void)(lowest), (lane_mask)ALL_LANES)

#define MUTANT rg_p256_mutant_parity
#include "end.h"
