// SHA-256 with the processor's SHA instructions, for up to two messages at a time: their instructions are interleaved,
// so that those of one message hide the latency of the other's.
//
// From the bottom up: FIPS 180-4 in terms of the instructions; where the words of a block come from; whole
// messages; the two entry points.
#include "sha256.h"

#if defined(__x86_64__)

#include "sha256_constants.h"

#include <immintrin.h>
#include <string.h>

#pragma clang attribute push(__attribute__((target("sha,ssse3,sse4.1"))), apply_to = function)

#define INLINE static inline __attribute__((always_inline))
#define UNROLLED _Pragma("clang loop unroll(full)")

enum {
    STREAMS = 2,  // messages at a time, at most
    BLOCK_BYTES = 64,
    VECTOR_BYTES = 16,
    BLOCK_VECTORS = 4,  // of four words each
    STEPS = 16,         // of four rounds each
    DIGEST_BYTES = 32,
    LENGTH_OFFSET = 56,  // of the length in bits, in the last block
};

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

// Steps 1 to 4 for one block of each of `streams` <= 2 messages. The schedules are consumed.
INLINE void compress(hash_state states[], schedule_ring schedules[], int streams) {
    hash_state v[STREAMS];
    for (int s = 0; s < streams; s++) v[s] = states[s];
    UNROLLED
    for (int step = 0; step < STEPS; step++) {
        const __m128i constants = four_words(rg_sha256_round_constants, step);
        for (int s = 0; s < streams; s++) {
            four_rounds(&v[s], _mm_add_epi32(next_words(&schedules[s], step), constants));
        }
    }
    for (int s = 0; s < streams; s++) add_state(&states[s], v[s]);
}

// The same for the second block of nodes, whose schedule is known beforehand.
INLINE void compress_node_padding(hash_state states[], int streams) {
    hash_state v[STREAMS];
    for (int s = 0; s < streams; s++) v[s] = states[s];
    UNROLLED
    for (int step = 0; step < STEPS; step++) {
        const __m128i addends = four_words(rg_sha256_node_padding, step);
        for (int s = 0; s < streams; s++) four_rounds(&v[s], addends);
    }
    for (int s = 0; s < streams; s++) add_state(&states[s], v[s]);
}

// MARK: - Bytes in and out

INLINE __m128i load(const uint8_t *bytes) { return _mm_loadu_si128((const __m128i *)bytes); }

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

// The 64 bytes at `block`.
INLINE schedule_ring load_block(const uint8_t *block) {
    schedule_ring schedule;
    for (int i = 0; i < BLOCK_VECTORS; i++) schedule.ring[i] = swap_bytes(load(block + VECTOR_BYTES * i));
    return schedule;
}

// How messages of one length end: what follows their whole blocks, and how it is cut and padded.
typedef struct {
    size_t length;      // of the message, in bytes
    size_t rest;        // of the last, partial block: 0 to 63 bytes
    __m128i cut;        // shuffles the last 16 bytes of the message: the last rest % 16 to the front, then zeros
    __m128i bit_after;  // 0x80 at byte rest % 16, else zeros
    __m128i bits;       // the length in bits where it stands in the last vector, as words
} message_ending;

INLINE message_ending ending_of(size_t length) {
    // Sixteen bytes from 16 - n: the indices of the last n of sixteen bytes, then the index that selects zero.
    static const uint8_t cuts[2 * VECTOR_BYTES] = {
        0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,   15,
        0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
    };
    // Sixteen bytes from 16 - n: 0x80 after n zeros.
    static const uint8_t bits_after[2 * VECTOR_BYTES] = {[VECTOR_BYTES] = 0x80};
    const size_t rest = length % BLOCK_BYTES;
    const size_t skipped = VECTOR_BYTES - rest % VECTOR_BYTES;
    const uint64_t bits = (uint64_t)length * 8;
    return (message_ending){
        .length = length,
        .rest = rest,
        .cut = load(cuts + skipped),
        .bit_after = load(bits_after + skipped),
        .bits = _mm_set_epi32((int)(uint32_t)bits, (int)(uint32_t)(bits >> 32), 0, 0),
    };
}

// The last sixteen bytes of the message; of a shorter one all its bytes, with zeros before them.
INLINE __m128i load_last(const uint8_t *message, size_t length) {
    if (length >= VECTOR_BYTES) return load(message + length - VECTOR_BYTES);
    uint8_t last[VECTOR_BYTES] = {0};
    for (size_t i = 0; i < length; i++) last[VECTOR_BYTES - length + i] = message[i];
    return load(last);
}

// The rest of the message, then the bit 1 and zeros (FIPS 180-4, 5.1.1). The length is left to the caller.
INLINE schedule_ring load_rest(const uint8_t *message, const message_ending *ending) {
    schedule_ring schedule;
    for (size_t i = 0; i < BLOCK_VECTORS; i++) {
        const size_t first = VECTOR_BYTES * i;
        if (first + VECTOR_BYTES <= ending->rest) {
            schedule.ring[i] = swap_bytes(load(message + (ending->length - ending->rest) + first));
        } else if (first <= ending->rest) {
            const __m128i bytes = _mm_shuffle_epi8(load_last(message, ending->length), ending->cut);
            schedule.ring[i] = swap_bytes(_mm_or_si128(bytes, ending->bit_after));
        } else {
            schedule.ring[i] = _mm_setzero_si128();
        }
    }
    return schedule;
}

// The length in bits, in the last two words of the last block (FIPS 180-4, 5.1.1), which are still zero.
INLINE void set_length(schedule_ring *schedule, const message_ending *ending) {
    schedule->ring[3] = _mm_or_si128(schedule->ring[3], ending->bits);
}

// MARK: - Whole messages

// `streams` <= 2 nodes: 64 bytes each.
INLINE void hash_nodes(const uint8_t *children, uint8_t *digests, int streams) {
    hash_state states[STREAMS];
    schedule_ring schedules[STREAMS];
    for (int s = 0; s < streams; s++) {
        states[s] = initial_state();
        schedules[s] = load_block(children + BLOCK_BYTES * s);
    }
    compress(states, schedules, streams);
    compress_node_padding(states, streams);
    for (int s = 0; s < streams; s++) store_digest(states[s], digests + DIGEST_BYTES * s);
}

// `streams` <= 2 messages with this ending.
INLINE void hash_messages(
    const uint8_t *const messages[], const message_ending *ending, uint8_t *digests, int streams) {
    hash_state states[STREAMS];
    schedule_ring schedules[STREAMS];
    for (int s = 0; s < streams; s++) states[s] = initial_state();
    for (size_t offset = 0; offset < ending->length - ending->rest; offset += BLOCK_BYTES) {
        for (int s = 0; s < streams; s++) schedules[s] = load_block(messages[s] + offset);
        compress(states, schedules, streams);
    }
    for (int s = 0; s < streams; s++) schedules[s] = load_rest(messages[s], ending);
    if (ending->rest >= LENGTH_OFFSET) {
        // The length does not fit behind the bit 1, and takes a block of its own.
        compress(states, schedules, streams);
        memset(schedules, 0, sizeof schedules);
    }
    for (int s = 0; s < streams; s++) set_length(&schedules[s], ending);
    compress(states, schedules, streams);
    for (int s = 0; s < streams; s++) store_digest(states[s], digests + DIGEST_BYTES * s);
}

// MARK: - Entry points

void rg_sha256_nodes_shani(const uint8_t *children, uint8_t *digests, size_t count) {
    size_t i = 0;
    for (; i + STREAMS <= count; i += STREAMS) {
        hash_nodes(children + BLOCK_BYTES * i, digests + DIGEST_BYTES * i, STREAMS);
    }
    if (i < count) hash_nodes(children + BLOCK_BYTES * i, digests + DIGEST_BYTES * i, 1);
}

void rg_sha256_messages_shani(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    const message_ending ending = ending_of(length);
    size_t i = 0;
    for (; i + STREAMS <= count; i += STREAMS) {
        hash_messages(messages + i, &ending, digests + DIGEST_BYTES * i, STREAMS);
    }
    if (i < count) hash_messages(messages + i, &ending, digests + DIGEST_BYTES * i, 1);
}

#pragma clang attribute pop

#endif
