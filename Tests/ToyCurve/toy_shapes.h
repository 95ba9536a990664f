// The shapes of tables for small curves, of the same kinds as the real ones: a new key has a column for each digit, a
// known key has several columns and subtables, of which the last is not full, and the generator has one column.
#pragma once

static const Shape NEW_KEY = {5, 3, 3};
static const Shape KNOWN_KEY = {5, 3, 2};
static const Shape GENERATOR = {GENERATOR_WIDTH, 2, 1};
_Static_assert(5 * 3 >= SCALAR_BITS && GENERATOR_WIDTH * 2 >= SCALAR_BITS, "digits for a scalar");
_Static_assert(5 * (3 - 1) + 1 >= SCALAR_BITS, "the last digit of a new key stands for bits that no scalar has");
