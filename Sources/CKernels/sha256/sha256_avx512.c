// SHA-256 of sixteen messages at a time: one 512-bit register holds word t of all sixteen. With more than sixteen
// messages, the rounds of two such groups are interleaved, so that the instructions of one hide the latency of the
// other.
//
// From the bottom up: the functions of FIPS 180-4 on vectors; compression of one block; turning rows of bytes
// into vectors of words and back; nodes; messages.
#include "sha256.h"

#if defined(__x86_64__)

#include "sha256_constants.h"

#include <immintrin.h>
#include <stdbool.h>
#include <string.h>

#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), apply_to = function)

#define INLINE static inline __attribute__((always_inline))

// Vectors stay in registers only if the loops over them are unrolled. The loops over rounds are unrolled by 8 only,
// after which every working variable is back in its register. More rounds do not fit into the processor's cache of
// decoded instructions, and decoding them again halves the speed: 16 rounds of two groups took a fifth longer in some
// builds and not in others, while 8 took the same time in all.
#define UNROLLED _Pragma("clang loop unroll(full)")
#define ROLLED _Pragma("clang loop unroll(disable)")

enum {
    LANES = 16,  // messages in a group
    GROUPS = 2,  // at most, at a time
    BLOCK_BYTES = 64,
    BLOCK_WORDS = 16,
    STATE_WORDS = 8,
    ROUNDS = 64,
    DIGEST_BYTES = 32,
    LENGTH_OFFSET = 56,  // of the length in bits, in the last block
};

// One 32-bit word of each of the sixteen messages. Operators work lane by lane, mod 2^32.
typedef uint32_t words __attribute__((vector_size(64)));

// MARK: - FIPS 180-4, 4.1.2

INLINE words splat(uint32_t word) { return (words)_mm512_set1_epi32((int)word); }

// 0 < count < 32.
INLINE words rotate_right(words x, unsigned count) { return (x >> count) | (x << (32 - count)); }

// The last argument of vpternlogd is a truth table: 0xca is "if x then y else z", 0xe8 "at least two".
INLINE words choose(words x, words y, words z) {
    return (words)_mm512_ternarylogic_epi32((__m512i)x, (__m512i)y, (__m512i)z, 0xca);
}

INLINE words majority(words x, words y, words z) {
    return (words)_mm512_ternarylogic_epi32((__m512i)x, (__m512i)y, (__m512i)z, 0xe8);
}

INLINE words big_sigma_0(words x) { return rotate_right(x, 2) ^ rotate_right(x, 13) ^ rotate_right(x, 22); }

INLINE words big_sigma_1(words x) { return rotate_right(x, 6) ^ rotate_right(x, 11) ^ rotate_right(x, 25); }

INLINE words small_sigma_0(words x) { return rotate_right(x, 7) ^ rotate_right(x, 18) ^ (x >> 3); }

INLINE words small_sigma_1(words x) { return rotate_right(x, 17) ^ rotate_right(x, 19) ^ (x >> 10); }

// MARK: - FIPS 180-4, 6.2.2: one block of each group

// The working variables, or the hash value, of each group; and its message schedule. Functions that take `groups` work
// on that many, which the compiler must know.
typedef words group_states[GROUPS][STATE_WORDS];
typedef words group_schedules[GROUPS][ROUNDS];

// Step 1: W[t] for t >= 16, at `word`, behind those before it.
INLINE words next_word(words *word) {
    return *word = word[-16] + small_sigma_0(word[-15]) + word[-7] + small_sigma_1(word[-2]);
}

// Step 3: round t, where `addend` is W[t] + K[t].
//
// The working variables do not move. Each round renames them instead: variable j of the standard, with a = 0
// and h = 7, is v[(j - t) & 7]. After 8 rounds every one is back at its own index, so t counts mod 8.
// The sums are grouped so that early operands are added early: the order of the standard took a twentieth longer.
INLINE void do_round(words v[STATE_WORDS], int t, words addend) {
    const words a = v[(0 - t) & 7], b = v[(1 - t) & 7], c = v[(2 - t) & 7];
    const words e = v[(4 - t) & 7], f = v[(5 - t) & 7], g = v[(6 - t) & 7], h = v[(7 - t) & 7];
    const words t1 = (h + addend) + (big_sigma_1(e) + choose(e, f, g));
    v[(3 - t) & 7] += t1;                                        // the next e
    v[(7 - t) & 7] = t1 + (big_sigma_0(a) + majority(a, b, c));  // the next a
}

// Step 4.
INLINE void add_states(int groups, group_states states, group_states v) {
    UNROLLED
    for (int g = 0; g < groups; g++) {
        UNROLLED
        for (int i = 0; i < STATE_WORDS; i++) states[g][i] += v[g][i];
    }
}

// Steps 1 to 4 for one block, whose words are the first sixteen of the schedule. The others are written.
INLINE void compress(int groups, group_states states, group_schedules schedules) {
    const uint32_t *constants = rg_sha256_round_constants;
    group_states v;
    memcpy(v, states, sizeof v[0] * groups);
    ROLLED
    for (int first = 0; first < BLOCK_WORDS; first += STATE_WORDS) {
        UNROLLED
        for (int t = 0; t < STATE_WORDS; t++) {
            UNROLLED
            for (int g = 0; g < groups; g++) do_round(v[g], t, schedules[g][first + t] + splat(constants[first + t]));
        }
    }
    ROLLED
    for (int first = BLOCK_WORDS; first < ROUNDS; first += STATE_WORDS) {
        UNROLLED
        for (int t = 0; t < STATE_WORDS; t++) {
            UNROLLED
            for (int g = 0; g < groups; g++) {
                do_round(v[g], t, next_word(&schedules[g][first + t]) + splat(constants[first + t]));
            }
        }
    }
    add_states(groups, states, v);
}

// The same for the second block of a node, whose schedule is known beforehand.
INLINE void compress_node_padding(int groups, group_states states) {
    const uint32_t *addends = rg_sha256_node_padding;
    group_states v;
    memcpy(v, states, sizeof v[0] * groups);
    ROLLED
    for (int first = 0; first < ROUNDS; first += STATE_WORDS) {
        UNROLLED
        for (int t = 0; t < STATE_WORDS; t++) {
            UNROLLED
            for (int g = 0; g < groups; g++) do_round(v[g], t, splat(addends[first + t]));
        }
    }
    add_states(groups, states, v);
}

INLINE void start(int groups, group_states states) {
    UNROLLED
    for (int g = 0; g < groups; g++) {
        UNROLLED
        for (int i = 0; i < STATE_WORDS; i++) states[g][i] = splat(rg_sha256_initial_state[i]);
    }
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
INLINE void schedule_of_rows(words schedule[ROUNDS], __m512i rows[LANES]) {
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

INLINE size_t smaller(size_t x, size_t y) { return x < y ? x : y; }

// The digests of all groups to where the first `count` belong: 32 bytes each at `digests`.
INLINE void store_first_digests(int groups, group_states states, uint8_t *digests, size_t count) {
    uint8_t padded[GROUPS * LANES * DIGEST_BYTES];
    const bool full = count == (size_t)groups * LANES;
    uint8_t *destination = full ? digests : padded;
    for (int g = 0; g < groups; g++) store_digests(states[g], destination + g * LANES * DIGEST_BYTES);
    if (!full) memcpy(digests, padded, DIGEST_BYTES * count);
}

// MARK: - Nodes: 64 bytes each, one after the other

// `count` of them, more than the groups but the last hold. Idle lanes repeat the last one.
INLINE void hash_nodes(int groups, const uint8_t *children, uint8_t *digests, size_t count) {
    group_states states;
    group_schedules schedules;
    start(groups, states);
    for (int g = 0; g < groups; g++) {
        __m512i rows[LANES];
        UNROLLED
        for (size_t i = 0; i < LANES; i++) {
            rows[i] = _mm512_loadu_si512(children + BLOCK_BYTES * smaller(g * LANES + i, count - 1));
        }
        schedule_of_rows(schedules[g], rows);
    }
    compress(groups, states, schedules);
    compress_node_padding(groups, states);
    store_first_digests(groups, states, digests, count);
}

static __attribute__((noinline)) void hash_nodes_of_one(const uint8_t *children, uint8_t *digests, size_t count) {
    hash_nodes(1, children, digests, count);
}

static __attribute__((noinline)) void hash_nodes_of_two(const uint8_t *children, uint8_t *digests, size_t count) {
    hash_nodes(2, children, digests, count);
}

void rg_sha256_nodes_avx512(const uint8_t *children, uint8_t *digests, size_t count) {
    for (size_t done = 0; done < count; done += GROUPS * LANES) {
        const size_t live = smaller(count - done, GROUPS * LANES);
        const uint8_t *first = children + BLOCK_BYTES * done;
        if (live > LANES) {
            hash_nodes_of_two(first, digests + DIGEST_BYTES * done, live);
        } else {
            hash_nodes_of_one(first, digests + DIGEST_BYTES * done, live);
        }
    }
}

// MARK: - Messages of any one length, each at its own address

// A whole block of each message, 64 bytes from `offset`.
INLINE void load_block(words schedule[ROUNDS], const uint8_t *const *messages, size_t offset) {
    __m512i rows[LANES];
    UNROLLED
    for (int i = 0; i < LANES; i++) rows[i] = _mm512_loadu_si512(messages[i] + offset);
    schedule_of_rows(schedule, rows);
}

// The last `rest` < 64 bytes of each message, from `offset`, then the bit 1 and zeros (FIPS 180-4, 5.1.1).
// The length is left to the caller.
INLINE void load_partial_block(words schedule[ROUNDS], const uint8_t *const *messages, size_t offset, size_t rest) {
    const __mmask64 present = ((__mmask64)1 << rest) - 1;
    const __m512i padding = _mm512_maskz_set1_epi8((__mmask64)1 << rest, (char)0x80);
    __m512i rows[LANES];
    // A masked load touches no byte whose bit is 0, even where the memory ends.
    UNROLLED
    for (int i = 0; i < LANES; i++) rows[i] = _mm512_mask_loadu_epi8(padding, present, messages[i] + offset);
    schedule_of_rows(schedule, rows);
}

// The length in bits, in the last two words of the last block (FIPS 180-4, 5.1.1).
INLINE void set_length(words schedule[ROUNDS], size_t length) {
    const uint64_t bits = (uint64_t)length * 8;
    schedule[14] = splat((uint32_t)(bits >> 32));
    schedule[15] = splat((uint32_t)bits);
}

// `count` messages, more than the groups but the last hold. Idle lanes repeat the last one.
INLINE void hash_messages(int groups, const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    static const uint8_t empty;
    const uint8_t *lanes[GROUPS * LANES];
    for (size_t i = 0; i < (size_t)groups * LANES; i++)
        lanes[i] = length == 0 ? &empty : messages[smaller(i, count - 1)];
    group_states states;
    group_schedules schedules;
    start(groups, states);
    const size_t rest = length % BLOCK_BYTES, whole = length - rest;
    const size_t blocks = length / BLOCK_BYTES + (rest < LENGTH_OFFSET ? 1 : 2);
    for (size_t block = 0; block < blocks; block++) {
        const size_t offset = block * BLOCK_BYTES;
        for (int g = 0; g < groups; g++) {
            if (offset < whole) {
                load_block(schedules[g], lanes + g * LANES, offset);
            } else if (offset == whole) {
                load_partial_block(schedules[g], lanes + g * LANES, offset, rest);
            } else {
                // The length did not fit behind the bit 1, and has a block of its own.
                memset(schedules[g], 0, BLOCK_WORDS * sizeof(words));
            }
            if (block == blocks - 1) set_length(schedules[g], length);
        }
        compress(groups, states, schedules);
    }
    store_first_digests(groups, states, digests, count);
}

static __attribute__((noinline)) void hash_messages_of_one(
    const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    hash_messages(1, messages, length, digests, count);
}

static __attribute__((noinline)) void hash_messages_of_two(
    const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    hash_messages(2, messages, length, digests, count);
}

void rg_sha256_messages_avx512(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    for (size_t done = 0; done < count; done += GROUPS * LANES) {
        const size_t live = smaller(count - done, GROUPS * LANES);
        if (live > LANES) {
            hash_messages_of_two(messages + done, length, digests + DIGEST_BYTES * done, live);
        } else {
            hash_messages_of_one(messages + done, length, digests + DIGEST_BYTES * done, live);
        }
    }
}

#pragma clang attribute pop

#endif
