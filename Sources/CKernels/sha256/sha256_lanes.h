// SHA-256 of many messages at a time, one in each lane of a vector register: one register holds word t of all of them.
// A group is as many messages as a register has lanes. The rounds of several groups can be interleaved, so that the
// instructions of one hide the latency of the others.
//
// From the bottom up: the functions of FIPS 180-4 on vectors; compression of one block; nodes; messages.
//
// The file that includes this one has an instruction set. It defines before:
//
//   LANES, GROUPS   messages in a group, and groups at a time, at most
//   words           one 32-bit word of each message; operators work lane by lane, mod 2^32
//   splat, choose, majority
//                   the word in every lane; "if x then y else z" and "at least two", bit by bit
//   load_blocks     the first sixteen words of the schedule, from 64 bytes at messages[i] + offset for lane i
//   load_partial_blocks
//                   the same from the last `rest` < 64 bytes of the messages, then the bit 1 and zeros (FIPS 180-4,
//                   5.1.1); reads no byte behind them
//   store_digests   LANES digests of 32 bytes each, of the lanes in their order

#pragma once

// MARK: - FIPS 180-4, 4.1.2

// 0 < count < 32.
INLINE words rotate_right(words x, unsigned count) { return (x >> count) | (x << (32 - count)); }

INLINE words big_sigma_0(words x) { return rotate_right(x, 2) ^ rotate_right(x, 13) ^ rotate_right(x, 22); }

INLINE words big_sigma_1(words x) { return rotate_right(x, 6) ^ rotate_right(x, 11) ^ rotate_right(x, 25); }

INLINE words small_sigma_0(words x) { return rotate_right(x, 7) ^ rotate_right(x, 18) ^ (x >> 3); }

INLINE words small_sigma_1(words x) { return rotate_right(x, 17) ^ rotate_right(x, 19) ^ (x >> 10); }

// MARK: - FIPS 180-4, 6.2.2: one block of each group
//
// The loops over rounds are unrolled by 8 only, after which every working variable is back in its register. More rounds
// do not fit into the processor's cache of decoded instructions, and decoding them again halves the speed: 16 rounds of
// two groups took a fifth longer in some builds and not in others, while 8 took the same time in all.

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
        const uint8_t *nodes[LANES];
        UNROLLED
        for (size_t i = 0; i < LANES; i++) nodes[i] = children + BLOCK_BYTES * smaller(g * LANES + i, count - 1);
        load_blocks(schedules[g], nodes, 0);
    }
    compress(groups, states, schedules);
    compress_node_padding(groups, states);
    store_first_digests(groups, states, digests, count);
}

static __attribute__((noinline)) void hash_nodes_of_one(const uint8_t *children, uint8_t *digests, size_t count) {
    hash_nodes(1, children, digests, count);
}

static __attribute__((noinline)) void hash_nodes_of_all(const uint8_t *children, uint8_t *digests, size_t count) {
    hash_nodes(GROUPS, children, digests, count);
}

// `count` nodes, which may be 0.
INLINE void hash_all_nodes(const uint8_t *children, uint8_t *digests, size_t count) {
    for (size_t done = 0; done < count; done += GROUPS * LANES) {
        const size_t live = smaller(count - done, GROUPS * LANES);
        const uint8_t *first = children + BLOCK_BYTES * done;
        if (live > LANES) {
            hash_nodes_of_all(first, digests + DIGEST_BYTES * done, live);
        } else {
            hash_nodes_of_one(first, digests + DIGEST_BYTES * done, live);
        }
    }
}

// MARK: - Messages of any one length, each at its own address

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
                load_blocks(schedules[g], lanes + g * LANES, offset);
            } else if (offset == whole) {
                load_partial_blocks(schedules[g], lanes + g * LANES, offset, rest);
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

static __attribute__((noinline)) void hash_messages_of_all(
    const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    hash_messages(GROUPS, messages, length, digests, count);
}

// `count` messages, which may be 0.
INLINE void hash_all_messages(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count) {
    for (size_t done = 0; done < count; done += GROUPS * LANES) {
        const size_t live = smaller(count - done, GROUPS * LANES);
        if (live > LANES) {
            hash_messages_of_all(messages + done, length, digests + DIGEST_BYTES * done, live);
        } else {
            hash_messages_of_one(messages + done, length, digests + DIGEST_BYTES * done, live);
        }
    }
}
