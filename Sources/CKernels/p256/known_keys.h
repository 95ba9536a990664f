// The shapes of known keys' tables. Kernels whose tables have one form can read each other's. The including file
// defines
//
// - KNOWN_KEY_FORM: the number of one of the shapes below.
//
// With fewer columns there are fewer doublings, and the table is larger. Measured on one core of a Zen 5 in batches of
// 256, as multiples of ECDSA_do_verify, with 256 and with 4,096 keys:
//
//     width, columns   6, 4 (22 KB)   6, 3 (30 KB)   6, 2 (44 KB)   7, 2 (76 KB)
//     AVX-512 IFMA     41.2   33.6    43.0   33.5    45.1   37.7    48.2   45.9
//     AVX-512 FMA      22.7   20.3    24.3   21.6    26.2   23.8    27.9   25.9
//     AVX2             10.2    9.9    11.0   10.7    12.0   11.5    12.9   12.2
//     portable          5.6    5.4     5.9    5.8     6.4    6.2     6.8    6.5
//
// IFMA has the smallest. It gains the least with 256 keys; with 4,096 keys on a processor with a smaller cache, larger
// tables lost (in ns: 1,200 with 22 KB, 1,330 with 32 KB in 5 columns of width 7); and twice as many keys fit into the
// memory. The other kernels have 44 KB: 76 KB give them a fourteenth more for three quarters more memory. They have the
// same, so that the portable kernel verifies lone signatures with the tables of a wide one, twice as fast as that.
#pragma once

#ifndef KNOWN_KEY_FORM
#error "define KNOWN_KEY_FORM before including the shapes of known keys' tables"
#endif

enum {
/// Bits of a digit, and columns.
#if KNOWN_KEY_FORM == 0
    KNOWN_KEY_WIDTH = 6,
    KNOWN_KEY_COLUMNS = 4,
#elif KNOWN_KEY_FORM == 1
    KNOWN_KEY_WIDTH = 6,
    KNOWN_KEY_COLUMNS = 2,
#else
#error "there is no such form"
#endif
    KNOWN_KEY_DIGITS = (256 + KNOWN_KEY_WIDTH - 1) / KNOWN_KEY_WIDTH,
    KNOWN_KEY_SUBTABLES = (KNOWN_KEY_DIGITS + KNOWN_KEY_COLUMNS - 1) / KNOWN_KEY_COLUMNS,
    /// A row of 64 bytes for every odd digit.
    KNOWN_KEY_BYTES = KNOWN_KEY_SUBTABLES * (1 << (KNOWN_KEY_WIDTH - 1)) * 64,
};

// The arguments at `multiply_key` and `sum_runs` need the columns, and at least two of them.
_Static_assert(KNOWN_KEY_COLUMNS > 1 && KNOWN_KEY_COLUMNS <= 8, "from 2 to 8 columns");
