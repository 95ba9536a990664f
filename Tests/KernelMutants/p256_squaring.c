// A square lacks one of its cross products.
#include "begin.h"
#include "../../Sources/CKernels/p256/field.h"

INLINE Sum broken_square_plus_product(const Digits *a, const Digits *b, const Digits *c) {
    Digits short_of = *a;
    short_of.limb[0][4] = zero_lanes();
    return square_plus_product(&short_of, b, c);
}
#define square_plus_product broken_square_plus_product

#define MUTANT rg_p256_mutant_squaring
#include "end.h"
