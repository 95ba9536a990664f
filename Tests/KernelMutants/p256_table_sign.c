// Every table after a subtable's doublings holds the opposite points.
#include "begin.h"
#include "../../Sources/CKernels/p256/group.h"
#include "../../Sources/CKernels/p256/scalar.h"

NOINLINE int broken_invert_digits(Digits *inverse, const Digits *z) {
    const Digits zero = {0};
    const int is_done = invert_digits(inverse, z);
    *inverse = difference(&zero, inverse, 0);
    return is_done;
}
#define invert_digits broken_invert_digits

#define MUTANT rg_p256_mutant_table_sign
#include "end.h"
