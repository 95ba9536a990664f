// The numbers of y^2 = x^3 - 3 x + 10 modulo 43, with 37 points; the names are those of p256/constants.h. The generator
// is (0, 15), the first point. The tests derive every one of them again.
#pragma once

#include <stdint.h>

enum { SCALAR_BITS = 6, GENERATOR_WIDTH = 5 };

static const uint64_t P_LIMBS[5] = {43};
static const uint64_t P_WORDS[4] = {43};
static const uint64_t P_ONE[5] = {41};
static const uint64_t P_THREE[5] = {37};
static const uint64_t P_SQUARED_RADIX[5] = {4};
static const uint64_t P_CUBED_RADIX[5] = {35};
static const uint64_t CURVE_B[5] = {23};
static const uint64_t GENERATOR_X[5] = {0};
static const uint64_t GENERATOR_Y[5] = {13};
static const uint64_t N_LIMBS[5] = {37};
static const uint64_t N_WORDS[4] = {37};
static const uint64_t N_SQUARED_RADIX[5] = {9};
static const uint64_t N_CUBED_RADIX[5] = {10};
static const uint64_t P_MINUS_N[5] = {6};
static const uint64_t P_FACTOR = 0x5f417d05f417d;
static const uint64_t N_FACTOR = 0xe45306eb3e453;
/// 2^-260 mod p.
static const uint64_t P_RADIX_INVERSE = 21;
