// SHA-256 of up to two messages at a time, with instructions that do several rounds of one message: the instructions of
// one message hide the latency of the other's.
//
// From the bottom up: compression of one block; where the words of a block come from; whole messages.
//
// The file that includes this one has an instruction set. It defines before:
//
//   vector            four words of 32 bits, or sixteen bytes
//   hash_state        the eight words of the hash value, or of the working variables
//   initial_state     before the first block
//   add_state         FIPS 180-4, 6.2.2, step 4
//   four_rounds       step 3, where the addends are the sums W[t] + K[t]
//   schedule_ring     the latest sixteen words of the schedule
//   next_words        step 1: the words 4 * step to 4 * step + 3
//   four_words        the words 4 * step to 4 * step + 3 of a table
//   add, either, zeros, load, shuffle, swap_bytes
//                     on vectors: sums of words; "or"; sixteen bytes from memory; byte i is that at indices[i], or zero
//                     where that is 0x80; the bytes of each word in the other order
//   store_digest      32 bytes: the words a to h

#pragma once

enum {
    STREAMS = 2,  // messages at a time, at most
    STEPS = 16,   // of four rounds each
};

// MARK: - FIPS 180-4, 6.2.2: one block

// Steps 1 to 4 for one block of each of `streams` <= 2 messages. The schedules are consumed.
INLINE void compress(hash_state states[], schedule_ring schedules[], int streams) {
    hash_state v[STREAMS];
    for (int s = 0; s < streams; s++) v[s] = states[s];
    UNROLLED
    for (int step = 0; step < STEPS; step++) {
        const vector constants = four_words(rg_sha256_round_constants, step);
        for (int s = 0; s < streams; s++) {
            four_rounds(&v[s], add(next_words(&schedules[s], step), constants));
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
        const vector addends = four_words(rg_sha256_node_padding, step);
        for (int s = 0; s < streams; s++) four_rounds(&v[s], addends);
    }
    for (int s = 0; s < streams; s++) add_state(&states[s], v[s]);
}

// MARK: - Bytes in

// The 64 bytes at `block`.
INLINE schedule_ring load_block(const uint8_t *block) {
    schedule_ring schedule;
    for (int i = 0; i < BLOCK_VECTORS; i++) schedule.ring[i] = swap_bytes(load(block + VECTOR_BYTES * i));
    return schedule;
}

// How messages of one length end: what follows their whole blocks, and how it is cut and padded.
typedef struct {
    size_t length;     // of the message, in bytes
    size_t rest;       // of the last, partial block: 0 to 63 bytes
    vector cut;        // shuffles the last 16 bytes of the message: the last rest % 16 to the front, then zeros
    vector bit_after;  // 0x80 at byte rest % 16, else zeros
    vector bits;       // the length in bits where it stands in the last vector, as words
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
    const uint32_t last_words[4] = {0, 0, (uint32_t)(bits >> 32), (uint32_t)bits};
    return (message_ending){
        .length = length,
        .rest = rest,
        .cut = load(cuts + skipped),
        .bit_after = load(bits_after + skipped),
        .bits = load((const uint8_t *)last_words),
    };
}

// The last sixteen bytes of the message; of a shorter one all its bytes, with zeros before them.
INLINE vector load_last(const uint8_t *message, size_t length) {
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
            const vector bytes = shuffle(load_last(message, ending->length), ending->cut);
            schedule.ring[i] = swap_bytes(either(bytes, ending->bit_after));
        } else {
            schedule.ring[i] = zeros();
        }
    }
    return schedule;
}

// The length in bits, in the last two words of the last block (FIPS 180-4, 5.1.1), which are still zero.
INLINE void set_length(schedule_ring *schedule, const message_ending *ending) {
    schedule->ring[3] = either(schedule->ring[3], ending->bits);
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

// `count` nodes, which may be 0.
INLINE void hash_all_nodes(const uint8_t *children, uint8_t *digests, size_t count) {
    size_t i = 0;
    for (; i + STREAMS <= count; i += STREAMS) {
        hash_nodes(children + BLOCK_BYTES * i, digests + DIGEST_BYTES * i, STREAMS);
    }
    if (i < count) hash_nodes(children + BLOCK_BYTES * i, digests + DIGEST_BYTES * i, 1);
}

// `count` messages, which may be 0.
INLINE void hash_all_messages(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    const message_ending ending = ending_of(length);
    size_t i = 0;
    for (; i + STREAMS <= count; i += STREAMS) {
        hash_messages(messages + i, &ending, digests + DIGEST_BYTES * i, STREAMS);
    }
    if (i < count) hash_messages(messages + i, &ending, digests + DIGEST_BYTES * i, 1);
}
