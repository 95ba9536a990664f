// A compressed key gets the computed root, whatever parity the key names.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

#define _mm512_test_epi64_mask(a, b) ((void)(a), (__mmask8)0)

#define MUTANT rg_p256_mutant_parity
#include "end.h"
