// SHA-256 of sixteen messages at a time: word t of all sixteen shares one 512-bit register.
//
// From the bottom up: the functions of FIPS 180-4 on vectors; compression of one block; turning rows of bytes
// into vectors of words and back; whole messages; the two entry points.
#include "sha256.h"

#if defined(__x86_64__)

#include "sha256_constants.h"

#include <immintrin.h>
#include <string.h>

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)

#define INLINE static inline __attribute__((always_inline))

// Vectors stay in registers only if the loops over them are unrolled. The loops over rounds are not, or not wholly:
// the instructions of 128 rounds in line outgrow the cache of decoded instructions, and took a fifth longer.
#define UNROLLED _Pragma("clang loop unroll(full)")
#define ROLLED _Pragma("clang loop unroll(disable)")

enum {
    LANES = 16,         // messages in a group
    BLOCK_BYTES = 64,
    BLOCK_WORDS = 16,
    STATE_WORDS = 8,
    ROUNDS = 64,
    DIGEST_BYTES = 32,
    LENGTH_OFFSET = 56, // of the length in bits, in the last block
};

// One 32-bit word of each of the sixteen messages. Operators work lane by lane, mod 2^32.
typedef uint32_t words __attribute__((vector_size(64)));

// MARK: - FIPS 180-4, 4.1.2

INLINE words splat(uint32_t word) {
    return (words)_mm512_set1_epi32((int)word);
}

// 0 < count < 32.
INLINE words rotate_right(words x, unsigned count) {
    return (x >> count) | (x << (32 - count));
}

// The last argument of vpternlogd is a truth table: 0xca is "if x then y else z", 0xe8 "at least two".
INLINE words choose(words x, words y, words z) {
    return (words)_mm512_ternarylogic_epi32((__m512i)x, (__m512i)y, (__m512i)z, 0xca);
}

INLINE words majority(words x, words y, words z) {
    return (words)_mm512_ternarylogic_epi32((__m512i)x, (__m512i)y, (__m512i)z, 0xe8);
}

INLINE words big_sigma_0(words x) {
    return rotate_right(x, 2) ^ rotate_right(x, 13) ^ rotate_right(x, 22);
}

INLINE words big_sigma_1(words x) {
    return rotate_right(x, 6) ^ rotate_right(x, 11) ^ rotate_right(x, 25);
}

INLINE words small_sigma_0(words x) {
    return rotate_right(x, 7) ^ rotate_right(x, 18) ^ (x >> 3);
}

INLINE words small_sigma_1(words x) {
    return rotate_right(x, 17) ^ rotate_right(x, 19) ^ (x >> 10);
}

// MARK: - FIPS 180-4, 6.2.2: one block

// Step 1: the word of round t >= 16, in the place of the word of round t - 16, which no later round needs. So t
// counts mod 16.
INLINE words next_word(words schedule[BLOCK_WORDS], int t) {
    words word = schedule[t & 15] + small_sigma_0(schedule[(t - 15) & 15]) + schedule[(t - 7) & 15]
        + small_sigma_1(schedule[(t - 2) & 15]);
    schedule[t & 15] = word;
    return word;
}

// Step 3: round t, where `addend` is W[t] + K[t].
//
// The working variables do not move. Each round renames them instead: variable j of the standard, with a = 0
// and h = 7, is v[(j - t) & 7]. After 8 rounds every one is back at its own index, so t counts mod 8.
// The sums are grouped so that what is known early is added early: the order of the standard took a twentieth longer.
INLINE void do_round(words v[STATE_WORDS], int t, words addend) {
    const words a = v[(0 - t) & 7], b = v[(1 - t) & 7], c = v[(2 - t) & 7];
    const words e = v[(4 - t) & 7], f = v[(5 - t) & 7], g = v[(6 - t) & 7], h = v[(7 - t) & 7];
    const words t1 = (h + addend) + (big_sigma_1(e) + choose(e, f, g));
    v[(3 - t) & 7] += t1;                                         // the next e
    v[(7 - t) & 7] = t1 + (big_sigma_0(a) + majority(a, b, c));   // the next a
}

// Step 4.
INLINE void add_state(words state[STATE_WORDS], const words v[STATE_WORDS]) {
    UNROLLED
    for (int i = 0; i < STATE_WORDS; i++) state[i] += v[i];
}

// Steps 1 to 4 for one block. The schedule is consumed.
INLINE void compress(words state[STATE_WORDS], words schedule[BLOCK_WORDS]) {
    const uint32_t *constants = rg_sha256_round_constants;
    words v[STATE_WORDS];
    memcpy(v, state, sizeof v);
    UNROLLED
    for (int t = 0; t < BLOCK_WORDS; t++) do_round(v, t, schedule[t] + splat(constants[t]));
    ROLLED
    for (int first = BLOCK_WORDS; first < ROUNDS; first += BLOCK_WORDS) {
        UNROLLED
        for (int t = 0; t < BLOCK_WORDS; t++) do_round(v, t, next_word(schedule, t) + splat(constants[first + t]));
    }
    add_state(state, v);
}

// The same for the second block of a node, whose schedule is known beforehand.
INLINE void compress_node_padding(words state[STATE_WORDS]) {
    const uint32_t *addends = rg_sha256_node_padding;
    words v[STATE_WORDS];
    memcpy(v, state, sizeof v);
    ROLLED
    for (int first = 0; first < ROUNDS; first += BLOCK_WORDS) {
        UNROLLED
        for (int t = 0; t < BLOCK_WORDS; t++) do_round(v, t, splat(addends[first + t]));
    }
    add_state(state, v);
}

INLINE void start(words state[STATE_WORDS]) {
    UNROLLED
    for (int i = 0; i < STATE_WORDS; i++) state[i] = splat(rg_sha256_initial_state[i]);
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

// MARK: - Whole messages, one in each lane

// Sixteen messages that all have the same length. In a group of fewer, the idle lanes repeat the last one.
typedef struct {
    const uint8_t *messages[LANES];
} message_group;

// A whole block of each message, 64 bytes from `offset`.
INLINE void load_block(words schedule[BLOCK_WORDS], const message_group *group, size_t offset) {
    __m512i rows[LANES];
    UNROLLED
    for (int i = 0; i < LANES; i++) rows[i] = _mm512_loadu_si512(group->messages[i] + offset);
    schedule_of_rows(schedule, rows);
}

// The last `rest` < 64 bytes of each message, from `offset`, then the bit 1 and zeros (FIPS 180-4, 5.1.1).
// The length is left to the caller.
INLINE void load_partial_block(words schedule[BLOCK_WORDS], const message_group *group, size_t offset, size_t rest) {
    const __mmask64 present = ((__mmask64)1 << rest) - 1;
    const __m512i padding = _mm512_maskz_set1_epi8((__mmask64)1 << rest, (char)0x80);
    __m512i rows[LANES];
    // A masked load touches no byte whose bit is 0, even where the memory ends.
    UNROLLED
    for (int i = 0; i < LANES; i++) {
        rows[i] = _mm512_mask_loadu_epi8(padding, present, group->messages[i] + offset);
    }
    schedule_of_rows(schedule, rows);
}

// The length in bits, in the last two words of the last block (FIPS 180-4, 5.1.1).
INLINE void set_length(words schedule[BLOCK_WORDS], size_t length) {
    const uint64_t bits = (uint64_t)length * 8;
    schedule[14] = splat((uint32_t)(bits >> 32));
    schedule[15] = splat((uint32_t)bits);
}

// `compress` as one copy, for all the blocks of messages of any length.
static __attribute__((noinline)) void compress_block(words state[STATE_WORDS], words schedule[BLOCK_WORDS]) {
    compress(state, schedule);
}

// Sixteen nodes: 64 bytes each. 512 bytes at `digests`.
static __attribute__((noinline)) void hash_nodes(const message_group *group, uint8_t *digests) {
    words state[STATE_WORDS], schedule[BLOCK_WORDS];
    start(state);
    load_block(schedule, group, 0);
    compress(state, schedule);
    compress_node_padding(state);
    store_digests(state, digests);
}

// Sixteen messages of `length` bytes. 512 bytes at `digests`.
static void hash_messages(const message_group *group, size_t length, uint8_t *digests) {
    words state[STATE_WORDS], schedule[BLOCK_WORDS];
    start(state);
    const size_t rest = length % BLOCK_BYTES, whole = length - rest;
    for (size_t offset = 0; offset < whole; offset += BLOCK_BYTES) {
        load_block(schedule, group, offset);
        compress_block(state, schedule);
    }
    load_partial_block(schedule, group, whole, rest);
    if (rest >= LENGTH_OFFSET) {
        // The length does not fit behind the bit 1, and takes a block of its own.
        compress_block(state, schedule);
        memset(schedule, 0, sizeof schedule);
    }
    set_length(schedule, length);
    compress_block(state, schedule);
    store_digests(state, digests);
}

// Digests of the first `count` <= 16 messages of the group.
INLINE void hash_group(const message_group *group, size_t length, uint8_t *digests, size_t count) {
    uint8_t padded[LANES * DIGEST_BYTES];
    uint8_t *destination = count == LANES ? digests : padded;
    if (length == BLOCK_BYTES) {
        hash_nodes(group, destination);
    } else {
        hash_messages(group, length, destination);
    }
    if (count < LANES) memcpy(digests, padded, DIGEST_BYTES * count);
}

INLINE size_t smaller(size_t x, size_t y) {
    return x < y ? x : y;
}

// MARK: - Entry points

void rg_sha256_nodes_avx512(const uint8_t *children, uint8_t *digests, size_t count) {
    for (size_t done = 0; done < count; done += LANES) {
        const size_t live = smaller(count - done, LANES);
        message_group group;
        for (size_t i = 0; i < LANES; i++) {
            group.messages[i] = children + BLOCK_BYTES * (done + smaller(i, live - 1));
        }
        hash_group(&group, BLOCK_BYTES, digests + DIGEST_BYTES * done, live);
    }
}

void rg_sha256_messages_avx512(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    static const uint8_t empty;
    for (size_t done = 0; done < count; done += LANES) {
        const size_t live = smaller(count - done, LANES);
        message_group group;
        for (size_t i = 0; i < LANES; i++) {
            group.messages[i] = length == 0 ? &empty : messages[done + smaller(i, live - 1)];
        }
        hash_group(&group, length, digests + DIGEST_BYTES * done, live);
    }
}

#pragma clang attribute pop

#endif
