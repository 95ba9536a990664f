// A compressed key gets the computed root, whatever parity the key names.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

// The root is said to have the parity that the key names.
#define odd_values(is_odd, root) memcpy(is_odd, odd, sizeof is_odd)

#define MUTANT rg_p256_mutant_parity
#include "end.h"
