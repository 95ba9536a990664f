// The numbers of y^2 = x^3 - 3 x + 32 modulo 1283, with 1223 points; the names are those of p256/constants.h. The
// generator is (1, 610), the first point. The tests derive every one of them again.
#pragma once

#include <stdint.h>

enum { SCALAR_BITS = 11, GENERATOR_WIDTH = 6 };

static const uint64_t P_LIMBS[5] = {1283};
static const uint64_t P_WORDS[4] = {1283};
static const uint64_t P_ONE[5] = {921};
static const uint64_t P_THREE[5] = {197};
static const uint64_t P_SQUARED_RADIX[5] = {178};
static const uint64_t P_CUBED_RADIX[5] = {997};
static const uint64_t CURVE_B[5] = {1246};
static const uint64_t GENERATOR_X[5] = {921};
static const uint64_t GENERATOR_Y[5] = {1139};
static const uint64_t N_LIMBS[5] = {1223};
static const uint64_t N_WORDS[4] = {1223};
static const uint64_t N_SQUARED_RADIX[5] = {686};
static const uint64_t N_CUBED_RADIX[5] = {1147};
static const uint64_t P_MINUS_N[5] = {60};
static const uint64_t P_FACTOR = 0x3da7ce8417255;
static const uint64_t N_FACTOR = 0x01e246c028309;
/// 2^-260 mod p.
static const uint64_t P_RADIX_INVERSE = 762;
