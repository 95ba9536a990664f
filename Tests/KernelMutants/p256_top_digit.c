// A scalar's digits are cut off at 255 bits.
#include "begin.h"
#include "../../Sources/CKernels/p256/scalar.h"

INLINE lanes broken_window(const lanes u[LIMBS], int bit, int width) {
    lanes bits = window(u, bit, width);
    return bit <= 255 && bit + width > 255 ? bit_and(bits, broadcast((1ull << (255 - bit)) - 1)) : bits;
}
#define window broken_window
/// As the true one, over the broken window.
INLINE lane_mask broken_odd_digit(lanes *row, const lanes u[LIMBS], int place, int width, int count) {
    lanes bits = window(u, width * place + 1, width);
    if (place == count - 1) bits = bit_or(bits, broadcast(1ull << (width - 1)));
    const lane_mask positive = nonzero_lanes(bit_and(bits, broadcast(1ull << (width - 1))));
    bits = choose(positive, bits, minus(broadcast(UINT64_MAX), bits));
    *row = bit_and(bits, broadcast((1ull << (width - 1)) - 1));
    return ALL_LANES & ~positive;
}
#define odd_digit broken_odd_digit

#define MUTANT rg_p256_mutant_top_digit
#include "end.h"
