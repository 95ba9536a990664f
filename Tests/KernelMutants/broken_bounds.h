// The bounds that the P-256 kernel checks in debug builds, each with a name for the mutants and the message of its
// check.
#pragma once

#define BOUNDS(BOUND)                                                                     \
    BOUND(montgomery_product, "Montgomery product: below 2^260")                          \
    BOUND(comparison, "comparison: of clean limbs")                                       \
    BOUND(subtraction, "subtraction of a modulus: from clean limbs")                      \
    BOUND(inversion, "inversion: of values below twice the modulus")                      \
    BOUND(inverse_value, "inverse: of a value that is not 0 and below the modulus")       \
    BOUND(inverse_coefficients, "inverse: d and e between -2m and m")                     \
    BOUND(words_clean, "words: of clean limbs")                                           \
    BOUND(words_value, "words: of a value below 2^256")                                   \
    BOUND(sum_limbs, "sum: limbs below 2^60 in magnitude")                                \
    BOUND(sum_of_digits, "sum of digits: of clean limbs")                                 \
    BOUND(digits_value, "digits: from 0 to 2^260 - 1")                                    \
    BOUND(weak_reduction_of, "weak reduction: of 0 to 2^268 - 1")                         \
    BOUND(weak_reduction_top, "weak reduction: of a top limb from 0 to 2^60 - 1")         \
    BOUND(weak_reduction_to, "weak reduction: to p + 2^225 (h + 1)")                      \
    BOUND(clean_limbs, "clean digits: limbs from 0 to 2^52 - 1")                          \
    BOUND(canonical_below_p, "canonical: below p")                                        \
    BOUND(product_limbs, "product: limbs below 2^57")                                     \
    BOUND(product_value, "product: from 0 to ((a b + c d) / 16 + 1) p")                   \
    BOUND(product_256_bits, "product below 256 bits: at most 1.1 p before it is reduced") \
    BOUND(value_of_words, "value of words: below p")                                      \
    BOUND(point_x, "point: X from 2.5 p to 9.7 p")                                        \
    BOUND(point_v, "point: V at most 2 p")                                                \
    BOUND(point_z, "point: Z at most 1.2 p")                                              \
    BOUND(affine_clean, "affine point: clean coordinates")                                \
    BOUND(affine_value, "affine point: coordinates at most 1.1 p")                        \
    BOUND(doubling_zz, "doubling: zz at most 1.1 p")                                      \
    BOUND(doubling_minus, "doubling: X - zz from 1.5 p to 9.7 p")                         \
    BOUND(doubling_plus, "doubling: X + zz from 2.6 p to 10.8 p")                         \
    BOUND(doubling_factors, "doubling: (X - zz) (X + zz) from 0.2 p to 7.5 p")            \
    BOUND(doubling_alpha, "doubling: alpha at most 1.1 p")                                \
    BOUND(doubling_squared, "doubling: alpha^2 at most 1.1 p")                            \
    BOUND(doubling_s, "doubling: s at most 1.7 p")                                        \
    BOUND(doubling_x, "doubling: X' from 2.7 p to 7.1 p")                                 \
    BOUND(doubling_difference, "doubling: X' - s from p to 7.1 p")                        \
    BOUND(doubling_twice, "doubling: 2 (X' - s) from 2.1 p to 14.2 p")                    \
    BOUND(doubling_g, "doubling: g at most 1.3 p")                                        \
    BOUND(doubling_v, "doubling: V' at most 2 p")                                         \
    BOUND(doubling_z, "doubling: Z' at most 1.2 p")                                       \
    BOUND(addition_difference, "addition: X - x zz from 1.4 p to 9.7 p")                  \
    BOUND(addition_h, "addition: h at most 1.01 p")                                       \
    BOUND(addition_twice_h, "addition: 2 h at most 2.02 p")                               \
    BOUND(addition_other, "addition: 2 y zzz at most 1.1 p")                              \
    BOUND(addition_own, "addition: V + 2 p from 2 p to 4 p")                              \
    BOUND(addition_r, "addition: r from 0.9 p to 5.1 p")                                  \
    BOUND(addition_squared, "addition: r^2 at most 2.6 p")                                \
    BOUND(addition_j, "addition: j at most 1.1 p")                                        \
    BOUND(addition_w, "addition: w at most 1.8 p")                                        \
    BOUND(addition_x, "addition: X' from 2.5 p to 9.7 p")                                 \
    BOUND(addition_x_difference, "addition: X' - w from 0.7 p to 9.7 p")                  \
    BOUND(addition_half, "addition: V' / 2 at most 4.2 p before it is reduced")           \
    BOUND(addition_v, "addition: V' at most 1.01 p")                                      \
    BOUND(addition_zz, "addition: zz at most 1.1 p")                                      \
    BOUND(addition_zzz, "addition: zzz at most 1.1 p")                                    \
    BOUND(addition_i, "addition: i at most 1.3 p")                                        \
    BOUND(addition_z, "addition: Z' at most 1.2 p")                                       \
    BOUND(chain_difference, "difference of coordinates: from 0.9 p to 3.1 p")             \
    BOUND(chain_alpha, "chain: alpha / 3 from 1.9 p to 3.1 p before it is reduced")       \
    BOUND(chain_step, "chain: X of 2 P from 0.9 p to 4.1 p before it is reduced")         \
    BOUND(chain_z, "chain: Z at most 1.7 p")                                              \
    BOUND(chain_x, "chain: X' from p to 4.6 p before it is reduced")                      \
    BOUND(rows_inverse, "rows: 1 / Z at most 1.6 p")                                      \
    BOUND(tree_leaf, "tree: 2 y from -0.1 p to 1.1 p")                                    \
    BOUND(tree_divisor, "tree: divisor from 1.9 p to 6.1 p")                              \
    BOUND(tree_prefix, "tree: product of divisors at most 1.7 p")                         \
    BOUND(tree_inverse, "tree: inverse at most 1.7 p")                                    \
    BOUND(tree_y_difference, "tree: 2 yb - 2 ya + 3 p from 1.9 p to 4.1 p")               \
    BOUND(tree_slope, "tree: slope at most 1.4 p")                                        \
    BOUND(tree_x, "tree: slope^2 - xa - xb + 3 p from 0.9 p to 4.2 p")                    \
    BOUND(tree_y, "tree: 2 y' from 0.9 p to 3.6 p before it is reduced")                  \
    BOUND(tree_blocks, "tree: from 1 to TREE_BLOCKS blocks")                              \
    BOUND(tree_order, "tree: disjoint runs in ascending order")                           \
    BOUND(tree_points, "tree: runs within the points of a block")                         \
    BOUND(tree_repair, "tree: no divisor is zero after the repair")                       \
    BOUND(scalar_value, "scalar: below 2 n")                                              \
    BOUND(scalar_odd, "scalar: odd")                                                      \
    BOUND(scalar_range, "scalar: from 1 to n")                                            \
    BOUND(second_x, "scalar: r + n below p")                                              \
    BOUND(digit_count, "digit: digits for 256 bits")                                      \
    BOUND(digit_row, "digit: row below 2^(width - 1)")                                    \
    BOUND(no_zero_s, "scalars: no s is zero")                                             \
    BOUND(curve_equation, "curve equation: x^2 - 3 + p from 0.9 p to 2.1 p")              \
    BOUND(key_difference, "key: y^2 - rhs + 3 p from 1.9 p to 4.1 p")                     \
    BOUND(no_zero_z, "keys: no Z of a chain is zero")                                     \
    BOUND(outcome_difference, "outcome: X - c Z^2 + 2 p from 3.4 p to 11.7 p")            \
    BOUND(batch_count, "batch: from 1 to RG_P256_BATCH_MAX checks")
