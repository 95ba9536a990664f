// SHA-256 of sixteen messages at a time: one 512-bit register holds word t of all sixteen. With more than sixteen
// messages, the rounds of two such groups are interleaved, so that the instructions of one hide the latency of the
// other.
//
// From the bottom up: the functions of FIPS 180-4 that AVX-512 has instructions for; turning rows of bytes into vectors
// of words and back; blocks. sha256_lanes.h has the rest.
#include "sha256.h"

#if defined(__x86_64__)

#include "sha256_constants.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)

enum {
    LANES = 16,
    GROUPS = 2,
};

// One 32-bit word of each of the sixteen messages. Operators work lane by lane, mod 2^32.
typedef uint32_t words __attribute__((vector_size(64)));

// MARK: - FIPS 180-4, 4.1.2

INLINE words splat(uint32_t word) { return (words)_mm512_set1_epi32((int)word); }

// The last argument of vpternlogd is a truth table: 0xca is "if x then y else z", 0xe8 "at least two".
INLINE words choose(words x, words y, words z) {
    return (words)_mm512_ternarylogic_epi32((__m512i)x, (__m512i)y, (__m512i)z, 0xca);
}

INLINE words majority(words x, words y, words z) {
    return (words)_mm512_ternarylogic_epi32((__m512i)x, (__m512i)y, (__m512i)z, 0xe8);
}

// MARK: - Rows of bytes and vectors of words

// Swaps the bytes within each 32-bit word: FIPS 180-4 reads and writes words big-endian.
INLINE __m512i swap_bytes(__m512i x) {
    const __m512i order = _mm512_set4_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203);
    return _mm512_shuffle_epi8(x, order);
}

// Transposes each 4 x 4 square of words: word i of 128-bit lane j of x[k] changes place with word k of lane j of x[i].
INLINE void transpose_squares(__m512i x[4]) {
    __m512i low01 = _mm512_unpacklo_epi32(x[0], x[1]), high01 = _mm512_unpackhi_epi32(x[0], x[1]);
    __m512i low23 = _mm512_unpacklo_epi32(x[2], x[3]), high23 = _mm512_unpackhi_epi32(x[2], x[3]);
    x[0] = _mm512_unpacklo_epi64(low01, low23);
    x[1] = _mm512_unpackhi_epi64(low01, low23);
    x[2] = _mm512_unpacklo_epi64(high01, high23);
    x[3] = _mm512_unpackhi_epi64(high01, high23);
}

// Transposes the 4 x 4 square of 128-bit lanes in a, b, c, d: lane i of the k-th changes place with lane k of the i-th.
INLINE void transpose_lanes(__m512i *a, __m512i *b, __m512i *c, __m512i *d) {
    __m512i even01 = _mm512_shuffle_i32x4(*a, *b, 0x88), odd01 = _mm512_shuffle_i32x4(*a, *b, 0xdd);
    __m512i even23 = _mm512_shuffle_i32x4(*c, *d, 0x88), odd23 = _mm512_shuffle_i32x4(*c, *d, 0xdd);
    *a = _mm512_shuffle_i32x4(even01, even23, 0x88);
    *b = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
    *c = _mm512_shuffle_i32x4(even01, even23, 0xdd);
    *d = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
}

// From rows (the block of message i, as bytes, in rows[i]) to the first sixteen words of the schedule.
INLINE void schedule_of_rows(words schedule[BLOCK_WORDS], __m512i rows[LANES]) {
    UNROLLED
    for (int i = 0; i < LANES; i++) rows[i] = swap_bytes(rows[i]);
    UNROLLED
    for (int i = 0; i < LANES; i += 4) transpose_squares(rows + i);
    // rows[4 * i + k] now holds, in its lane j, word 4 * j + k of the four messages from 4 * i.
    UNROLLED
    for (int k = 0; k < 4; k++) transpose_lanes(&rows[k], &rows[4 + k], &rows[8 + k], &rows[12 + k]);
    UNROLLED
    for (int i = 0; i < LANES; i++) schedule[i] = (words)rows[i];
}

// The digests of all sixteen lanes to 512 bytes at `digests`.
INLINE void store_digests(const words state[STATE_WORDS], uint8_t *digests) {
    __m512i low[4], high[4];
    UNROLLED
    for (int k = 0; k < 4; k++) low[k] = (__m512i)state[k];
    UNROLLED
    for (int k = 0; k < 4; k++) high[k] = (__m512i)state[4 + k];
    transpose_squares(low);
    transpose_squares(high);
    // Lane j of low[k] and of high[k] are now the two halves of the digest of message 4 * j + k.
    const __m512i first_two = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
    const __m512i last_two = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
    UNROLLED
    for (int k = 0; k < 4; k++) {
        __m512i pairs[2] = {
            swap_bytes(_mm512_permutex2var_epi64(low[k], first_two, high[k])),
            swap_bytes(_mm512_permutex2var_epi64(low[k], last_two, high[k])),
        };
        UNROLLED
        for (int p = 0; p < 2; p++) {
            uint8_t *digest = digests + DIGEST_BYTES * (8 * p + k);
            _mm256_storeu_si256((__m256i *)digest, _mm512_castsi512_si256(pairs[p]));
            _mm256_storeu_si256((__m256i *)(digest + 4 * DIGEST_BYTES), _mm512_extracti64x4_epi64(pairs[p], 1));
        }
    }
}

// MARK: - Blocks

// A whole block of each message, 64 bytes from `offset`.
INLINE void load_blocks(words schedule[BLOCK_WORDS], const uint8_t *const *messages, size_t offset) {
    __m512i rows[LANES];
    UNROLLED
    for (int i = 0; i < LANES; i++) rows[i] = _mm512_loadu_si512(messages[i] + offset);
    schedule_of_rows(schedule, rows);
}

// The last `rest` < 64 bytes of each message, from `offset`, then the bit 1 and zeros (FIPS 180-4, 5.1.1).
// The length is left to the caller.
INLINE void load_partial_blocks(
    words schedule[BLOCK_WORDS], const uint8_t *const *messages, size_t offset, size_t rest) {
    const __mmask64 present = ((__mmask64)1 << rest) - 1;
    const __m512i padding = _mm512_maskz_set1_epi8((__mmask64)1 << rest, (char)0x80);
    __m512i rows[LANES];
    // A masked load touches no byte whose bit is 0, even where the memory ends.
    UNROLLED
    for (int i = 0; i < LANES; i++) rows[i] = _mm512_mask_loadu_epi8(padding, present, messages[i] + offset);
    schedule_of_rows(schedule, rows);
}

#include "sha256_lanes.h"

// MARK: - Entry points

void rg_sha256_nodes_avx512(const uint8_t *children, uint8_t *digests, size_t count) {
    hash_all_nodes(children, digests, count);
}

void rg_sha256_messages_avx512(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    hash_all_messages(messages, length, digests, count);
}

#pragma clang attribute pop

#endif
