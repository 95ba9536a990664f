// SHA-256 (FIPS 180-4) of many messages at once: one pair of functions for each instruction set.
//
// All pairs keep the same contract and give the same digests. Nothing here asks what the processor can do:
// the caller does, once, before it picks a pair. No function allocates, blocks, or keeps anything.
#ifndef RG_SHA256_H
#define RG_SHA256_H

#include <stddef.h>
#include <stdint.h>

// The contract of `rg_sha256_nodes_*`: the digests of `count` messages of 64 bytes, which are the inner nodes
// of a Merkle tree.
//
//   children   64 * count readable bytes. Message i is the 64 bytes at children + 64 * i.
//   digests    32 * count writable bytes, which overlap nothing of `children`. The digest of message i goes
//              to digests + 32 * i.
//
// No alignment is asked for. Nothing outside the two ranges is read or written. A count of 0 does nothing,
// and then the pointers may be null.
//
// The contract of `rg_sha256_messages_*`: the digests of `count` messages that all have the same length.
//
//   messages   `count` pointers, each to `length` readable bytes. Messages may overlap one another or be
//              the same. When `length` is 0 the pointers are not followed and may be null.
//   length     in bytes, below 2^61 (FIPS 180-4, 1).
//   digests    32 * count writable bytes, which overlap neither a message nor the array of pointers. The
//              digest of message i goes to digests + 32 * i.
//
// No alignment is asked for but that of the pointers. No byte before a message or after its end is read.
// A count of 0 does nothing, and then `messages` and `digests` may be null.

#if defined(__x86_64__)

// Sixteen messages at a time, one in each lane of a vector register.
// Requires AVX512F, AVX512BW, AVX512DQ and AVX512VL, enabled by the operating system.
//
// Up to sixteen cost as much as sixteen, because idle lanes repeat a message; for up to about eight the SHA-NI pair is
// cheaper. Seventeen to thirty-two go through the rounds together and cost a third more than sixteen.
void rg_sha256_nodes_avx512(const uint8_t *children, uint8_t *digests, size_t count);
void rg_sha256_messages_avx512(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count);

// Eight messages at a time, one in each lane of a vector register. Up to eight cost as much as eight, because idle
// lanes repeat a message. Nine to sixteen go through the rounds together. Requires AVX2, enabled by the operating
// system.
void rg_sha256_nodes_avx2(const uint8_t *children, uint8_t *digests, size_t count);
void rg_sha256_messages_avx2(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count);

// Two messages at a time, their instructions interleaved; an odd last message goes alone.
// Requires SHA, SSSE3 and SSE4.1.
void rg_sha256_nodes_shani(const uint8_t *children, uint8_t *digests, size_t count);
void rg_sha256_messages_shani(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count);

#endif

#if defined(__aarch64__)

// Two messages at a time, their instructions interleaved; an odd last message goes alone.
// Requires the SHA-2 instructions of ARMv8.
void rg_sha256_nodes_armsha2(const uint8_t *children, uint8_t *digests, size_t count);
void rg_sha256_messages_armsha2(const uint8_t *const *messages, size_t length, uint8_t *digests, size_t count);

#endif

#endif
