// The numbers of P-256 (SEC 2, 2.4.2), as limbs of 52 bits or words of 64, least significant first.
// "Montgomery form" of x is x * 2^260 modulo p or n. The tests derive every one of them again.
#pragma once

#include <stdint.h>

/// Bits of p and of n: every scalar is below 2^SCALAR_BITS.
enum { SCALAR_BITS = 256 };

/// The field's prime p = 2^256 - 2^224 + 2^192 + 2^96 - 1.
static const uint64_t P_LIMBS[5] = {
    0xfffffffffffff, 0x00fffffffffff, 0x0000000000000, 0x0001000000000, 0x0ffffffff0000};
static const uint64_t P_WORDS[4] = {0xffffffffffffffff, 0x00000000ffffffff, 0x0000000000000000, 0xffffffff00000001};
/// -1 / p mod 2^52: the Montgomery factor of the prime.
static const uint64_t P_FACTOR = 1;
/// 1 in Montgomery form.
static const uint64_t P_ONE[5] = {0x0000000000010, 0xf000000000000, 0xfffffffffffff, 0xffeffffffffff, 0x00000000fffff};
/// 3 in Montgomery form.
static const uint64_t P_THREE[5] = {
    0x0000000000030, 0xd000000000000, 0xfffffffffffff, 0xffcffffffffff, 0x00000002fffff};
/// 2^520 mod p: times this is into Montgomery form.
static const uint64_t P_SQUARED_RADIX[5] = {
    0x0000000000300, 0xffffffff00000, 0xffffefffffffb, 0xfdfffffffffff, 0x0000004ffffff};
/// 2^780 mod p: times this is into Montgomery form, of the inverse of a Montgomery form.
static const uint64_t P_CUBED_RADIX[5] = {
    0xfd0000000a000, 0xffffff7ffffff, 0xfffcffffffedf, 0x100000005ffff, 0x0000180000000};
/// b of y^2 = x^3 - 3x + b, in Montgomery form.
static const uint64_t CURVE_B[5] = {
    0xdf6229c4bddfd, 0xca8843090d89c, 0x212ed6acf005c, 0x83415a220abf7, 0x0c30061dd4874};
/// The generator's x in Montgomery form.
static const uint64_t GENERATOR_X[5] = {
    0x30d418a9143c1, 0xc4fedb60179e7, 0x62251075ba95f, 0x5c669fb732b77, 0x08905f76b5375};
/// The generator's y in Montgomery form.
static const uint64_t GENERATOR_Y[5] = {
    0x5357ce95560a8, 0x43a19e45cddf2, 0x21f3258b4ab8e, 0xd8552e88688dd, 0x0571ff18a5885};
/// The group's order n.
static const uint64_t N_LIMBS[5] = {
    0x9cac2fc632551, 0xada7179e84f3b, 0xfffffffbce6fa, 0x0000fffffffff, 0x0ffffffff0000};
static const uint64_t N_WORDS[4] = {0xf3b9cac2fc632551, 0xbce6faada7179e84, 0xffffffffffffffff, 0xffffffff00000000};
/// 2^520 mod n.
static const uint64_t N_SQUARED_RADIX[5] = {
    0x5cc0dea6dc3ba, 0x192a067d8a084, 0xbec59615571bb, 0x1fc245b2392b6, 0x0e12d9559d956};
/// p - n: an r below this stands for two x coordinates, r and r + n.
static const uint64_t P_MINUS_N[5] = {
    0x6353d039cdaae, 0x5358e8617b0c4, 0x0000000431905, 0x0000000000000, 0x0000000000000};
/// -1 / n mod 2^52: the Montgomery factor of the order.
static const uint64_t N_FACTOR = 0x1c8aaee00bc4f;
/// 2^780 mod n.
static const uint64_t N_CUBED_RADIX[5] = {
    0x9617f757e3b0d, 0x73e9fd26776fc, 0xe93f26238f08c, 0x4d513b9246ba5, 0x0a54e7b437be6};
