// SHA-256 with the SHA-2 instructions of ARMv8, for up to two messages at a time: their instructions are interleaved,
// so that those of one message hide the latency of the other's.
//
// FIPS 180-4 in terms of the instructions, and vectors of bytes. sha256_streams.h has the rest.
#include "sha256.h"

#if defined(__aarch64__)

#include "sha256_constants.h"

#include <arm_neon.h>
#include <string.h>

#pragma clang attribute push(__attribute__((target("sha2"))), apply_to = function)

typedef uint32x4_t vector;

// The eight words of the hash value, or of the working variables: from the bottom word up, a b c d and e f g h.
typedef struct {
    uint32x4_t abcd, efgh;
} hash_state;

// The latest sixteen words of the schedule: four vectors in a ring, each with its earliest word at the bottom.
typedef struct {
    uint32x4_t ring[BLOCK_VECTORS];
} schedule_ring;

// MARK: - FIPS 180-4, 6.2.2: one block

INLINE uint32x4_t four_words(const uint32_t *table, int step) { return vld1q_u32(table + 4 * step); }

INLINE hash_state initial_state(void) {
    return (hash_state){
        .abcd = four_words(rg_sha256_initial_state, 0),
        .efgh = four_words(rg_sha256_initial_state, 1),
    };
}

// Step 1: the words 4 * step to 4 * step + 3, which from the fourth step on replace those of four steps before.
INLINE uint32x4_t next_words(schedule_ring *schedule, int step) {
    uint32x4_t *ring = schedule->ring;
    uint32x4_t words = ring[step & 3];
    if (step < BLOCK_VECTORS) return words;
    words = vsha256su0q_u32(words, ring[(step + 1) & 3]);
    words = vsha256su1q_u32(words, ring[(step + 2) & 3], ring[(step + 3) & 3]);
    return ring[step & 3] = words;
}

// Step 3: four rounds, where `addends` are the sums W[t] + K[t]. One instruction returns the next a b c d, the other
// the next e f g h, both from the words before.
INLINE void four_rounds(hash_state *v, uint32x4_t addends) {
    const uint32x4_t abcd = v->abcd;
    v->abcd = vsha256hq_u32(abcd, v->efgh, addends);
    v->efgh = vsha256h2q_u32(v->efgh, abcd, addends);
}

// Step 4.
INLINE void add_state(hash_state *sum, hash_state v) {
    sum->abcd = vaddq_u32(sum->abcd, v.abcd);
    sum->efgh = vaddq_u32(sum->efgh, v.efgh);
}

// MARK: - Vectors of words and of bytes

INLINE uint32x4_t words_of_bytes(uint8x16_t bytes) { return vreinterpretq_u32_u8(bytes); }

INLINE uint8x16_t bytes_of_words(uint32x4_t words) { return vreinterpretq_u8_u32(words); }

INLINE uint32x4_t load(const uint8_t *bytes) { return words_of_bytes(vld1q_u8(bytes)); }

INLINE uint32x4_t zeros(void) { return vdupq_n_u32(0); }

INLINE uint32x4_t add(uint32x4_t x, uint32x4_t y) { return vaddq_u32(x, y); }

INLINE uint32x4_t either(uint32x4_t x, uint32x4_t y) { return vorrq_u32(x, y); }

INLINE uint32x4_t shuffle(uint32x4_t bytes, uint32x4_t indices) {
    return words_of_bytes(vqtbl1q_u8(bytes_of_words(bytes), bytes_of_words(indices)));
}

// Swaps the bytes within each 32-bit word: FIPS 180-4 reads and writes words big-endian.
INLINE uint32x4_t swap_bytes(uint32x4_t x) { return words_of_bytes(vrev32q_u8(bytes_of_words(x))); }

// 32 bytes at `digest`: the words a to h.
INLINE void store_digest(hash_state state, uint8_t *digest) {
    vst1q_u8(digest, bytes_of_words(swap_bytes(state.abcd)));
    vst1q_u8(digest + VECTOR_BYTES, bytes_of_words(swap_bytes(state.efgh)));
}

#include "sha256_streams.h"

// MARK: - Entry points

void rg_sha256_nodes_armsha2(const uint8_t *children, uint8_t *digests, size_t count) {
    hash_all_nodes(children, digests, count);
}

void rg_sha256_messages_armsha2(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    hash_all_messages(messages, length, digests, count);
}

#pragma clang attribute pop

#endif
