// Lanes whose multiplier is that of doubles, in plain C: the kernels for processors with a fused multiply-add run on
// every processor with it. `fma` rounds as the processor would, in the library where the processor has none.
#pragma once

#include "../../Sources/CKernels/p256/lanes/portable_vectors.h"

#include <fenv.h>
#include <math.h>

typedef struct {
    double lane[LANES];
} reals;

INLINE reals reals_of(lanes bits) {
    reals r;
    memcpy(&r, &bits, sizeof r);
    return r;
}
INLINE lanes bits_of(reals a) {
    lanes r;
    memcpy(&r, &a, sizeof r);
    return r;
}
INLINE reals real(double value) {
    reals r;
    UNROLL(l, 0, LANES) r.lane[l] = value;
    return r;
}
INLINE reals real_minus(reals a, reals b) {
    UNROLL(l, 0, LANES) a.lane[l] -= b.lane[l];
    return a;
}
INLINE lanes insert_exponent(lanes limb) { return insert_low(broadcast(0x4330000000000000ull), limb); }
/// The compiler must not compute the result itself, with another rounding.
static double (*volatile const fused)(double, double, double) = fma;
/// `begin_arithmetic` sets the rounding.
INLINE reals fused_toward_zero(reals a, reals b, reals c) {
    UNROLL(l, 0, LANES) a.lane[l] = fused(a.lane[l], b.lane[l], c.lane[l]);
    return a;
}
INLINE reals fused_exact(reals a, reals b, reals c) { return fused_toward_zero(a, b, c); }

#include "../../Sources/CKernels/p256/lanes/doubles.h"

/// The rounding.
typedef int arithmetic;
INLINE arithmetic begin_arithmetic(void) {
    const arithmetic before = fegetround();
    fesetround(FE_TOWARDZERO);
    return before;
}
INLINE void end_arithmetic(arithmetic before) { fesetround(before); }
