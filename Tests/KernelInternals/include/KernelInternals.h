// What the kernels keep in private headers, for the tests: constants by name, and the arithmetic of the field.
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

/// An operation on a vector of lanes. Operands and results are five limbs of so many words: word `lanes` i + l is limb
/// i of lane l.
typedef struct {
    const char *name;
    /// Operands that count, the first ones.
    int operands;
    void (*run)(uint64_t *result, const uint64_t *const *operands);
} rg_field_operation;

/// Products and the like, of operands below 2^260 with clean limbs, for one kind of lanes.
typedef struct {
    const char *name;
    /// The number of lanes, and what the lanes say of themselves.
    int lanes, signed_shifts, shifts_are_quicker;
    const rg_field_operation *operation;
    size_t count;
} rg_field_operations;

/// The operations of a kind of lanes that needs no features which `features` lacks, and that was compiled in; 0 behind
/// the last.
const rg_field_operations *rg_field_operations_of(size_t number, uint32_t features);

/// The operations of the field of words, for one lane. Operands and results are four words.
extern const rg_field_operation *const rg_word_operations;
extern const size_t rg_word_operation_count;
