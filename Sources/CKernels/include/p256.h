// Batches of ECDSA signatures over P-256 (FIPS 186-5, 6.4.2).
#pragma once

#include <stddef.h>
#include <stdint.h>

/// One signature to verify. r, s and the digest of the signed data are 32 big-endian bytes each.
typedef struct {
    /// An X9.63 point: 02 or 03 and x, 33 bytes, or 04, x and y, 65 bytes. The first byte says how many are read.
    const uint8_t *point;
    uint8_t r[32], s[32], digest[32];
} rg_p256_check;

typedef enum {
    RG_P256_INVALID = 0,
    RG_P256_VALID = 1,
    /// The coordinates are not below p, or not on the curve.
    RG_P256_BAD_KEY = 2,
    /// The kernel cannot decide this one. The caller asks a library.
    RG_P256_UNDECIDED = 3,
} rg_p256_outcome;

enum {
    /// Signatures in one call, at most.
    RG_P256_BATCH_MAX = 256,
    /// Keys that `build_known` takes at once, at most.
    RG_P256_BUILD_MAX = 16,
    /// Bytes of the generator's table: 20 x 4,096 points.
    RG_P256_GENERATOR_BYTES = 20 * 4096 * 64,
    /// Alignment of tables and workspaces, in bytes.
    RG_P256_ALIGNMENT = 64,
};

/// The functions of one P-256 kernel. All pointers are aligned to RG_P256_ALIGNMENT where they lead to tables
/// or workspaces; a workspace serves one call at a time.
typedef struct {
    /// Signatures in one step. A last step that is not full costs as much as a full one.
    size_t width;
    size_t workspace_bytes;
    /// Bytes of a known key's table, a multiple of RG_P256_ALIGNMENT.
    size_t known_bytes;
    /// Kernels with the same number can use each other's tables of known keys.
    uint8_t known_form;
    /// Fills RG_P256_GENERATOR_BYTES.
    void (*build_generator)(uint64_t *generator, void *workspace);
    /// Writes an outcome for each of `count` checks, 1 to RG_P256_BATCH_MAX.
    void (*verify)(
        const rg_p256_check *checks, size_t count, const uint64_t *generator, void *workspace, uint8_t *outcomes);
    /// The same for keys with tables: tables[i] is that of the key of checks[i], whose point is not read.
    void (*verify_known)(
        const rg_p256_check *checks, const uint64_t *const *tables, size_t count, const uint64_t *generator,
        void *workspace, uint8_t *outcomes);
    /// Fills tables[i], `known_bytes`, for points[i], of `count` X9.63 points on the curve, 1 to
    /// RG_P256_BUILD_MAX. False when a point is not on the curve; then the tables are undefined.
    int (*build_known)(const uint8_t *const *points, uint64_t *const *tables, size_t count, void *workspace);
} rg_p256_functions;
