// Scalars modulo the group's order n: from a signature to the digits that choose table rows.
#pragma once

#include "modulus.h"

/// Clean limbs of u or n - u, whichever is odd, of clean limbs below 2 n. Returns the lanes with n - u.
/// Zero becomes n.
INLINE __mmask8 make_odd(lanes u[LIMBS]) {
    subtract_once(u, N_LIMBS);
    lanes negated[LIMBS], borrow = _mm512_setzero_si512();
    EACH_LIMB(i) {
        lanes d = plus(minus(broadcast(N_LIMBS[i]), u[i]), borrow);
        borrow = carry_of(d);
        negated[i] = low_bits(d);
    }
    const __mmask8 even = _mm512_testn_epi64_mask(u[0], broadcast(1));
    EACH_LIMB(i) u[i] = _mm512_mask_mov_epi64(u[i], even, negated[i]);
    return even;
}

/// Bits `bit` to `bit + width - 1` of clean limbs; bits from 260 on are zero. 0 < width < 52.
INLINE lanes window(const lanes u[LIMBS], int bit, int width) {
    const int limb = bit / LIMB_BITS, offset = bit % LIMB_BITS;
    if (limb >= LIMBS) return _mm512_setzero_si512();
    lanes bits = _mm512_srl_epi64(u[limb], _mm_cvtsi32_si128(offset));
    if (offset + width > LIMB_BITS && limb + 1 < LIMBS)
        bits = _mm512_or_epi64(bits, _mm512_sll_epi64(u[limb + 1], _mm_cvtsi32_si128(LIMB_BITS - offset)));
    return bit_and(bits, broadcast((1ull << width) - 1));
}

/// Digit `place` of an odd u below 2^256 in `count` signed odd digits of `width` bits, width * count >= 256:
///
///     u = sum of digit[place] * 2^(width * place),  digit = +-(2 row + 1),  0 <= row < 2^(width - 1)
///
/// Bit j of the digits' bits stands for +1 or -1 instead of 1 or 0; so they are u's own bits moved down by
/// one, with a 1 on top, and a digit with a 0 on top is minus the odd number of the complement.
/// Writes the row, returns the lanes with a negative digit.
INLINE __mmask8 odd_digit(lanes *row, const lanes u[LIMBS], int place, int width, int count) {
    lanes bits = window(u, width * place + 1, width);
    if (place == count - 1) bits = _mm512_or_epi64(bits, broadcast(1ull << (width - 1)));
    const __mmask8 negative = _mm512_testn_epi64_mask(bits, broadcast(1ull << (width - 1)));
    bits = _mm512_mask_xor_epi64(bits, negative, bits, broadcast(UINT64_MAX));
    *row = bit_and(bits, broadcast((1ull << (width - 1)) - 1));
    return negative;
}
