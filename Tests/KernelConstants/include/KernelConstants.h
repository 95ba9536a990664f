// The constants that the kernels keep in private headers, by name, for the tests that derive them again.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *name;
    /// 52 for limbs, 64 for words, least significant first.
    int bits;
    size_t count;
    const uint64_t *digits;
} rg_p256_constant;

extern const rg_p256_constant *const rg_p256_constants;
extern const size_t rg_p256_constant_count;

/// The tables of the SHA-256 kernels: 8, 64 and 64 words.
extern const uint32_t *const rg_sha256_tested_initial_state;
extern const uint32_t *const rg_sha256_tested_round_constants;
extern const uint32_t *const rg_sha256_tested_node_padding;
