#include "include/ToyCurve.h"

extern const rg_toy_curve rg_toy_curve_43, rg_toy_curve_1283;
extern const rg_toy_curve rg_toy_mutant_tree_silent, rg_toy_mutant_tree_neighbour, rg_toy_mutant_tree_unrepaired,
    rg_toy_mutant_z_ignored, rg_toy_mutant_z_unreduced, rg_toy_mutant_bad_key_kept, rg_toy_mutant_zero_s_kept;

const rg_toy_curve *rg_toy_curve_modulo(uint32_t p) {
    return p == 43 ? &rg_toy_curve_43 : p == 1283 ? &rg_toy_curve_1283 : 0;
}

const rg_toy_curve *rg_toy_mutant(size_t number) {
    static const rg_toy_curve *const mutants[] = {&rg_toy_mutant_tree_silent,     &rg_toy_mutant_tree_neighbour,
                                                  &rg_toy_mutant_tree_unrepaired, &rg_toy_mutant_z_ignored,
                                                  &rg_toy_mutant_z_unreduced,     &rg_toy_mutant_bad_key_kept,
                                                  &rg_toy_mutant_zero_s_kept};
    return number < sizeof mutants / sizeof mutants[0] ? mutants[number] : 0;
}
