// A scalar's digits are cut off at 255 bits.
#include "begin.h"
#include "../../Sources/CKernels/p256/scalar.h"

INLINE lanes broken_window(const lanes u[LIMBS], int bit, int width) {
    lanes bits = window(u, bit, width);
    return bit <= 255 && bit + width > 255 ? bit_and(bits, broadcast((1ull << (255 - bit)) - 1)) : bits;
}
#define window broken_window
/// As the true one, over the broken window.
INLINE __mmask8 broken_odd_digit(lanes *row, const lanes u[LIMBS], int place, int width, int count) {
    lanes bits = window(u, width * place + 1, width);
    if (place == count - 1) bits = _mm512_or_epi64(bits, broadcast(1ull << (width - 1)));
    const __mmask8 negative = _mm512_testn_epi64_mask(bits, broadcast(1ull << (width - 1)));
    bits = _mm512_mask_xor_epi64(bits, negative, bits, broadcast(UINT64_MAX));
    *row = bit_and(bits, broadcast((1ull << (width - 1)) - 1));
    return negative;
}
#define odd_digit broken_odd_digit

#define MUTANT rg_p256_mutant_top_digit
#include "end.h"
