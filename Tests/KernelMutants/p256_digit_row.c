// A digit of the highest row takes the row below.
#include "begin.h"
#include "../../Sources/CKernels/p256/scalar.h"

INLINE lane_mask broken_odd_digit(lanes *row, const lanes u[LIMBS], int place, int width, int count) {
    const lane_mask negative = odd_digit(row, u, place, width, count);
    const lanes highest = broadcast((1ull << (width - 1)) - 1);
    *row = choose(nonzero_lanes(minus(*row, highest)), *row, minus(*row, broadcast(1)));
    return negative;
}
#define odd_digit broken_odd_digit

#define MUTANT rg_p256_mutant_digit_row
#include "end.h"
