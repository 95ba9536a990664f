// A row of a table is one cache line: x and 2 y in Montgomery form as four words each, below 2^256, and below p
// but for one in 2^32.
#pragma once

#include "chain.h"

/// The point of every lane from the row that the lane points to. Rows are 64-byte aligned.
INLINE void load_rows(Affine *a, const lanes address[GROUPS]) {
    EACH_GROUP(g) {
        uint64_t at[LANES];
        lanes column[ROW_WORDS];
        store(at, address[g]);
        load_columns(column, at);
        coordinate_of_words(&a->x, g, column);
        coordinate_of_words(&a->y2, g, column + 4);
    }
}

/// The reverse, of clean coordinates below 2^256. Lanes whose address is 0 are left out.
INLINE void store_rows(const Affine *a, uint64_t *const row_of_lane[BLOCK]) {
    EACH_GROUP(g) {
        lanes column[ROW_WORDS];
        words_of_coordinate(column, &a->x, g);
        words_of_coordinate(column + 4, &a->y2, g);
        store_columns(row_of_lane + g * LANES, column);
    }
}

/// Stores the chain's multiples as rows k of every lane's table. `inverse`: of the chain's z; undefined afterwards.
NOINLINE void store_chain(Chain *chain, Digits *inverse, uint64_t *const table_of_lane[BLOCK]) {
    for (int k = CHAIN - 1; k >= 0; k--) {
        Digits zz, zzz;
        Affine a;
        check_digits(inverse, 0, 1.6, "rows: 1 / Z at most 1.6 p");
        square_digits(&zz, inverse);
        multiply(&zzz, &zz, inverse);
        multiply_below_256_bits(&a.x, &chain->x[k], &zz);
        multiply_below_256_bits(&a.y2, &chain->v[k], &zzz);
        uint64_t *row[BLOCK];
        for (int lane = 0; lane < BLOCK; lane++)
            row[lane] = table_of_lane[lane] ? table_of_lane[lane] + ROW_WORDS * k : 0;
        store_rows(&a, row);
        if (k > 0) multiply(inverse, inverse, &chain->z_ratio[k]);
    }
}

/// inverse = 1 / z in all groups. False when some lane is zero; then there is no inverse.
NOINLINE int invert_digits(Digits *inverse, const Digits *z) {
    lanes x[GROUPS][LIMBS], scratch[GROUPS][LIMBS];
    residue_of_digits(x, z);
    if (!invert_many(x, GROUPS, scratch, &FIELD_PRIME)) return 0;
    digits_of_residue(inverse, x);
    return 1;
}
