// SHA-256 with the processor's SHA instructions, for up to two messages at a time: their instructions are interleaved,
// so that those of one message hide the latency of the other's.
//
// FIPS 180-4 in terms of the instructions, and vectors of bytes. sha256_streams.h has the rest.
#include "sha256.h"

#if defined(__x86_64__)

#include "sha256_constants.h"

#include <immintrin.h>
#include <string.h>

#pragma clang attribute push(__attribute__((target("sha,ssse3,sse4.1"))), apply_to = function)

typedef __m128i vector;

// The eight words of the hash value, or of the working variables, in the order that sha256rnds2 asks for: from the
// top word down, a b e f and c d g h.
typedef struct {
    __m128i abef, cdgh;
} hash_state;

// The latest sixteen words of the schedule: four vectors in a ring, each with its earliest word at the bottom.
typedef struct {
    __m128i ring[BLOCK_VECTORS];
} schedule_ring;

// MARK: - FIPS 180-4, 6.2.2: one block

INLINE __m128i four_words(const uint32_t *table, int step) {
    return _mm_load_si128((const __m128i *)(table + 4 * step));
}

INLINE hash_state initial_state(void) {
    const uint32_t *h = rg_sha256_initial_state;
    return (hash_state){
        .abef = _mm_set_epi32((int)h[0], (int)h[1], (int)h[4], (int)h[5]),
        .cdgh = _mm_set_epi32((int)h[2], (int)h[3], (int)h[6], (int)h[7]),
    };
}

// Step 1: the words 4 * step to 4 * step + 3, which from the fourth step on replace those of four steps before.
INLINE __m128i next_words(schedule_ring *schedule, int step) {
    __m128i *ring = schedule->ring;
    __m128i words = ring[step & 3];
    if (step < BLOCK_VECTORS) return words;
    const __m128i latest = ring[(step + 3) & 3];
    const __m128i seven_before = _mm_alignr_epi8(latest, ring[(step + 2) & 3], 4);
    words = _mm_sha256msg1_epu32(words, ring[(step + 1) & 3]);
    words = _mm_sha256msg2_epu32(_mm_add_epi32(words, seven_before), latest);
    return ring[step & 3] = words;
}

// Step 3: four rounds, where `addends` are the sums W[t] + K[t]. The instruction does two rounds: what it returns is
// the next a b e f, and the a b e f that it was given is the next c d g h.
INLINE void four_rounds(hash_state *v, __m128i addends) {
    v->cdgh = _mm_sha256rnds2_epu32(v->cdgh, v->abef, addends);
    v->abef = _mm_sha256rnds2_epu32(v->abef, v->cdgh, _mm_shuffle_epi32(addends, 0x0e));
}

// Step 4.
INLINE void add_state(hash_state *sum, hash_state v) {
    sum->abef = _mm_add_epi32(sum->abef, v.abef);
    sum->cdgh = _mm_add_epi32(sum->cdgh, v.cdgh);
}

// MARK: - Vectors of words and of bytes

INLINE __m128i load(const uint8_t *bytes) { return _mm_loadu_si128((const __m128i *)bytes); }

INLINE __m128i zeros(void) { return _mm_setzero_si128(); }

INLINE __m128i add(__m128i x, __m128i y) { return _mm_add_epi32(x, y); }

INLINE __m128i either(__m128i x, __m128i y) { return _mm_or_si128(x, y); }

INLINE __m128i shuffle(__m128i bytes, __m128i indices) { return _mm_shuffle_epi8(bytes, indices); }

// Swaps the bytes within each 32-bit word: FIPS 180-4 reads and writes words big-endian.
INLINE __m128i swap_bytes(__m128i x) {
    return _mm_shuffle_epi8(x, _mm_set_epi32(0x0c0d0e0f, 0x08090a0b, 0x04050607, 0x00010203));
}

// 32 bytes at `digest`: the words a to h.
INLINE void store_digest(hash_state state, uint8_t *digest) {
    const __m128i feba = _mm_shuffle_epi32(state.abef, 0x1b);  // from the top word down, as all of these
    const __m128i dchg = _mm_shuffle_epi32(state.cdgh, 0xb1);
    const __m128i dcba = _mm_blend_epi16(feba, dchg, 0xf0);
    const __m128i hgfe = _mm_alignr_epi8(dchg, feba, 8);
    _mm_storeu_si128((__m128i *)digest, swap_bytes(dcba));
    _mm_storeu_si128((__m128i *)(digest + VECTOR_BYTES), swap_bytes(hgfe));
}

#include "sha256_streams.h"

// MARK: - Entry points

void rg_sha256_nodes_shani(const uint8_t *children, uint8_t *digests, size_t count) {
    hash_all_nodes(children, digests, count);
}

void rg_sha256_messages_shani(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    hash_all_messages(messages, length, digests, count);
}

#pragma clang attribute pop

#endif
