// Scalars modulo the group's order n: from a signature to the digits that choose table rows.
#pragma once

#include "montgomery.h"

/// Lanes whose lowest limb is even.
INLINE lane_mask even_lanes(lanes lowest) { return ALL_LANES & ~nonzero_lanes(bit_and(lowest, broadcast(1))); }

/// The scalar is odd and from 1 to n.
INLINE void check_odd(const lanes u[LIMBS]) {
    if (!KERNEL_CHECKS_ON) return;
    uint64_t end[LIMBS];
    UNROLL(i, 0, LIMBS) end[i] = N_LIMBS[i] + (i == 0);
    kernel_check(even_lanes(u[0]) == 0, "scalar: odd");
    kernel_check(is_below(u, end) == ALL_LANES, "scalar: from 1 to n");
}

/// Clean limbs of u or n - u, whichever is odd, of clean limbs below 2 n. Returns the lanes with n - u. The result is
/// from 1 to n.
///
/// Only odd numbers have the digits of `odd_digit`. n is odd, so exactly one of u and n - u is; and n P is infinity, so
/// u P = -((n - u) P), whose sign the caller flips. Zero is even and becomes n: the digits of n stand for n P, which is
/// infinity. Infinity has no form here. A sum of all digits of u1 G and u2 Q that passes no infinity on its way is
/// right nevertheless; on every other way P is added to -P, and the lane comes out undecided.
INLINE lane_mask make_odd(lanes u[LIMBS]) {
    check_below_twice(u, &GROUP_ORDER, "scalar: below 2 n");
    subtract_once(u, N_LIMBS);
    lanes negated[LIMBS];
    subtract_from(negated, N_LIMBS, u);
    const lane_mask even = even_lanes(u[0]);
    choose_limbs(u, even, negated, u);
    check_odd(u);
    return even;
}

/// sum = r + n in the lanes of `small`, whose r is below p - n, and r in the others; clean, of clean limbs below 2^256.
/// r + n is below p, so no carry leaves the top limb.
INLINE void add_order(lanes sum[LIMBS], const lanes r[LIMBS], lane_mask small) {
    lanes total[LIMBS], carry = zero_lanes();
    EACH_LIMB(i) total[i] = plus(r[i], broadcast(N_LIMBS[i]));
    choose_limbs(total, small, total, r);
    EACH_LIMB(i) {
        const lanes limb = plus(total[i], carry);
        carry = carry_of(limb);
        sum[i] = low_bits(limb);
    }
    if (KERNEL_CHECKS_ON) kernel_check((small & ~is_below(sum, P_LIMBS)) == 0, "scalar: r + n below p");
}

/// Bits `bit` to `bit + width - 1` of clean limbs; bits from 260 on are zero. 0 < width < 52.
INLINE lanes window(const lanes u[LIMBS], int bit, int width) {
    const int limb = bit / LIMB_BITS, offset = bit % LIMB_BITS;
    if (limb >= LIMBS) return zero_lanes();
    lanes bits = shift_right(u[limb], offset);
    if (offset + width > LIMB_BITS && limb + 1 < LIMBS)
        bits = bit_or(bits, shift_left(u[limb + 1], LIMB_BITS - offset));
    return bit_and(bits, broadcast((1ull << width) - 1));
}

/// Digit `place` of an odd u below 2^SCALAR_BITS in `count` signed odd digits of `width` bits, which are as many
/// bits or more:
///
///     u = sum of digit[place] * 2^(width * place),  digit = +-(2 row + 1),  0 <= row < 2^(width - 1)
///
/// With bits that stand for +1 and -1 instead of 1 and 0, an odd u has the bits of (u - 1) / 2 and a leading 1. A digit
/// is `width` of these bits: its highest bit is the sign, and a negative digit is minus the digit of the complement.
/// Writes the row, returns the lanes with a negative digit.
INLINE lane_mask odd_digit(lanes *row, const lanes u[LIMBS], int place, int width, int count) {
    kernel_check(width * count >= SCALAR_BITS && place >= 0 && place < count, "digit: digits for 256 bits");
    check_odd(u);
    lanes bits = window(u, width * place + 1, width);
    if (place == count - 1) bits = bit_or(bits, broadcast(1ull << (width - 1)));
    const lanes sign = bit_and(bits, broadcast(1ull << (width - 1)));
    const lane_mask negative = ALL_LANES & ~nonzero_lanes(sign);
    bits = choose(negative, minus(broadcast(UINT64_MAX), bits), bits);
    *row = bit_and(bits, broadcast((1ull << (width - 1)) - 1));
    check_below_power(*row, width - 1, "digit: row below 2^(width - 1)");
    return negative;
}
