#include "include/KernelMutants.h"

extern const rg_p256_functions rg_p256_mutant_curve_constant, rg_p256_mutant_order_radix, rg_p256_mutant_carry,
    rg_p256_mutant_lost_carry, rg_p256_mutant_reduction, rg_p256_mutant_squaring, rg_p256_mutant_doubling,
    rg_p256_mutant_addition_sign, rg_p256_mutant_digit_sign, rg_p256_mutant_digit_row, rg_p256_mutant_top_digit,
    rg_p256_mutant_r_range, rg_p256_mutant_s_range, rg_p256_mutant_key_range, rg_p256_mutant_x_range,
    rg_p256_mutant_zero_scalar, rg_p256_mutant_off_curve, rg_p256_mutant_vanished, rg_p256_mutant_tree_silent,
    rg_p256_mutant_tree_sum, rg_p256_mutant_second_x, rg_p256_mutant_second_x_always, rg_p256_mutant_second_x_limit,
    rg_p256_mutant_second_x_carry, rg_p256_mutant_one_lane, rg_p256_mutant_one_place, rg_p256_mutant_known_place,
    rg_p256_mutant_last_block, rg_p256_mutant_parity, rg_p256_mutant_table_sign;
#if defined(__x86_64__)
extern const rg_sha256_functions rg_sha256_mutant_round_constant, rg_sha256_mutant_node_padding, rg_sha256_mutant_tail,
    rg_sha256_mutant_lanes_swapped, rg_sha256_mutant_second_group, rg_sha256_mutant_second_stream,
    rg_sha256_mutant_padding, rg_sha256_mutant_avx2_lanes_swapped, rg_sha256_mutant_avx2_partial_block,
    rg_sha256_mutant_avx2_second_group, rg_sha256_mutant_shani_schedule;
#endif
#if defined(__aarch64__)
extern const rg_sha256_functions rg_sha256_mutant_armsha2_schedule, rg_sha256_mutant_armsha2_cut,
    rg_sha256_mutant_armsha2_second_stream;
#endif

// The mutants of the P-256 kernel need no feature, because they don't use the processor's vectors (begin.h).
#define P256(name) \
    { #name, 0, 0, &rg_p256_mutant_##name }
#define WIDE(name) \
    { #name, RG_CPU_AVX512, &rg_sha256_mutant_##name, 0 }
#define NARROW(name) \
    { #name, RG_CPU_SHA, &rg_sha256_mutant_##name, 0 }
#define AVX2(name) \
    { "avx2_" #name, RG_CPU_AVX2, &rg_sha256_mutant_avx2_##name, 0 }
#define ARM(name) \
    { "armsha2_" #name, RG_CPU_ARM_SHA2, &rg_sha256_mutant_armsha2_##name, 0 }

static const rg_kernel mutants[] = {
    P256(curve_constant), P256(order_radix),     P256(carry),          P256(lost_carry),
    P256(reduction),      P256(squaring),        P256(doubling),       P256(addition_sign),
    P256(digit_sign),     P256(digit_row),       P256(top_digit),      P256(r_range),
    P256(s_range),        P256(key_range),       P256(x_range),        P256(zero_scalar),
    P256(off_curve),      P256(vanished),        P256(tree_silent),    P256(tree_sum),
    P256(second_x),       P256(second_x_always), P256(second_x_limit), P256(second_x_carry),
    P256(one_lane),       P256(one_place),       P256(known_place),    P256(last_block),
    P256(parity),         P256(table_sign),
#if defined(__x86_64__)
    WIDE(round_constant), WIDE(node_padding),    WIDE(tail),           WIDE(lanes_swapped),
    WIDE(second_group),   NARROW(second_stream), WIDE(padding),        NARROW(shani_schedule),
    AVX2(lanes_swapped),  AVX2(partial_block),   AVX2(second_group),
#elif defined(__aarch64__)
    ARM(schedule),        ARM(cut),
    ARM(second_stream),
#endif
};

const rg_kernel *const rg_mutants = mutants;
const size_t rg_mutant_count = sizeof mutants / sizeof mutants[0];
