// SHA-256 of eight messages at a time: one 256-bit register holds word t of all eight. With more than eight messages,
// the rounds of two such groups are interleaved. The sixteen registers don't hold the working variables of both, but
// waiting for memory costs less than waiting for the last sum: on a Zen 5, two groups at a time took a sixth less.
//
// From the bottom up: the functions of FIPS 180-4 on vectors; turning rows of bytes into vectors
// of words and back; blocks. sha256_lanes.h has the rest.
#include "sha256.h"

#if defined(__x86_64__)

#include "sha256_constants.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)

enum {
    LANES = 8,
    GROUPS = 2,
};

// One 32-bit word of each of the eight messages. Operators work lane by lane, mod 2^32.
typedef uint32_t words __attribute__((vector_size(32)));

// MARK: - FIPS 180-4, 4.1.2

INLINE words splat(uint32_t word) { return (words)_mm256_set1_epi32((int)word); }

// "If x then y else z", in one operation less than the standard's form.
INLINE words choose(words x, words y, words z) { return z ^ (x & (y ^ z)); }

// "At least two".
INLINE words majority(words x, words y, words z) { return (x & y) | (z & (x | y)); }

// MARK: - Rows of bytes and vectors of words

// Swaps the bytes within each 32-bit word: FIPS 180-4 reads and writes words big-endian.
INLINE __m256i swap_bytes(__m256i x) {
    const __m256i order = _mm256_set_epi32(
        0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203, 0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
    return _mm256_shuffle_epi8(x, order);
}

// Transposes each 4 x 4 square of words: word i of 128-bit lane j of x[k] changes place with word k of lane j of x[i].
INLINE void transpose_squares(__m256i x[4]) {
    __m256i low01 = _mm256_unpacklo_epi32(x[0], x[1]), high01 = _mm256_unpackhi_epi32(x[0], x[1]);
    __m256i low23 = _mm256_unpacklo_epi32(x[2], x[3]), high23 = _mm256_unpackhi_epi32(x[2], x[3]);
    x[0] = _mm256_unpacklo_epi64(low01, low23);
    x[1] = _mm256_unpackhi_epi64(low01, low23);
    x[2] = _mm256_unpacklo_epi64(high01, high23);
    x[3] = _mm256_unpackhi_epi64(high01, high23);
}

// Transposes the 8 x 8 square of words in x: word i of x[k] changes place with word k of x[i].
INLINE void transpose(__m256i x[LANES]) {
    transpose_squares(x);
    transpose_squares(x + 4);
    // x[k] now holds, in its 128-bit lane j, word 4 * j + k of the first four rows; x[4 + k] that of the last four.
    UNROLLED
    for (int k = 0; k < 4; k++) {
        const __m256i first = x[k], last = x[4 + k];
        x[k] = _mm256_permute2x128_si256(first, last, 0x20);
        x[4 + k] = _mm256_permute2x128_si256(first, last, 0x31);
    }
}

// The digests of all eight lanes to 256 bytes at `digests`.
INLINE void store_digests(const words state[STATE_WORDS], uint8_t *digests) {
    __m256i rows[LANES];
    UNROLLED
    for (int i = 0; i < LANES; i++) rows[i] = (__m256i)state[i];
    transpose(rows);
    UNROLLED
    for (int i = 0; i < LANES; i++) _mm256_storeu_si256((__m256i *)(digests + DIGEST_BYTES * i), swap_bytes(rows[i]));
}

// MARK: - Blocks

// A whole block of each message, 64 bytes from `offset`: eight words of all messages, and then the other eight.
INLINE void load_blocks(words schedule[BLOCK_WORDS], const uint8_t *const *messages, size_t offset) {
    for (int half = 0; half < 2; half++) {
        __m256i rows[LANES];
        UNROLLED
        for (int i = 0; i < LANES; i++) {
            const uint8_t *bytes = messages[i] + offset + half * (BLOCK_BYTES / 2);
            rows[i] = swap_bytes(_mm256_loadu_si256((const __m256i *)bytes));
        }
        transpose(rows);
        UNROLLED
        for (int i = 0; i < LANES; i++) schedule[half * LANES + i] = (words)rows[i];
    }
}

// The last `rest` < 64 bytes of each message, from `offset`, then the bit 1 and zeros (FIPS 180-4, 5.1.1).
// The length is left to the caller.
INLINE void load_partial_blocks(
    words schedule[BLOCK_WORDS], const uint8_t *const *messages, size_t offset, size_t rest) {
    uint8_t blocks[LANES][BLOCK_BYTES];
    const uint8_t *lanes[LANES];
    for (int i = 0; i < LANES; i++) {
        // AVX2 has no load that touches only some bytes.
        memcpy(blocks[i], messages[i] + offset, rest);
        memset(blocks[i] + rest, 0, BLOCK_BYTES - rest);
        blocks[i][rest] = 0x80;
        lanes[i] = blocks[i];
    }
    load_blocks(schedule, lanes, 0);
}

#include "sha256_lanes.h"

// MARK: - Entry points

void rg_sha256_nodes_avx2(const uint8_t *children, uint8_t *digests, size_t count) {
    hash_all_nodes(children, digests, count);
}

void rg_sha256_messages_avx2(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    hash_all_messages(messages, length, digests, count);
}

#pragma clang attribute pop

#endif
