// The multiplier of lanes whose vectors can multiply and add doubles with one rounding (fused multiply-add).
//
// Let x and y be from 0 to 2^52 - 1, as doubles. Then, rounded towards zero,
//
//     h = x y + 2^104                         has the mantissa floor(x y / 2^52): its last place is 2^52
//     l = x y + ((2^104 + 2^52) - h)          has the mantissa x y mod 2^52: its last place is 1
//
// The difference in the second line is a multiple of 2^52 below 2^104 in magnitude, and so is exact; l is from 2^52 to
// 2^53 - 1, and so is exact too. Only h depends on the rounding. The bits of h and l are those of the halves plus those
// of 2^104 and 2^52, which are the same each time: `add_high` and `add_low` add them, and the accumulators start with
// as much less. (Emmart, Zheng and Weems, "Faster Modular Exponentiation Using Double Precision Floating Point
// Arithmetic on the GPU", ARITH 2018.)
//
// The including file defines, besides the vectors: reals, a vector of doubles; reals_of(bits) and bits_of(reals), which
// change no bit; real(x), x in all lanes; real_minus(a, b); insert_exponent(limb), the low 52 bits of a limb with those
// of 2^52 above; fused_toward_zero(a, b, c) and fused_exact(a, b, c), a b + c.
#pragma once

typedef reals factor;

#define LOW_BIAS 0x4330000000000000ull
#define HIGH_BIAS 0x4670000000000000ull
enum { SHIFTS_ARE_QUICKER = 1 };

INLINE factor factor_of(lanes limb) { return real_minus(reals_of(insert_exponent(limb)), real(0x1p52)); }
INLINE reals upper_half_of(factor a, factor b) { return fused_toward_zero(a, b, real(0x1p104)); }
/// The compiler computes the upper half once for both functions.
INLINE lanes add_low(lanes sum, factor a, factor b) {
    return plus(sum, bits_of(fused_exact(a, b, real_minus(real(0x1p104 + 0x1p52), upper_half_of(a, b)))));
}
INLINE lanes add_high(lanes sum, factor a, factor b) { return plus(sum, bits_of(upper_half_of(a, b))); }
